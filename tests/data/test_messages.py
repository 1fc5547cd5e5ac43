"""What cannot be read is refused in one line, with the place and what to try: by every reader."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from safecf import Interactions, ParameterWarning, datasets
from tests.data.matrices.matrices import EXAMPLE, raw_csr
from tests.helpers import refused
from tests.problems import N_DIMENSIONAL

READ = {"user": "u", "item": "i", "rating": "r", "min_rating": 1}
ROWS = "1,2,3\n" * 40_000
OPEN = 'u,i,r\n1,"2,3\n' + ROWS * 75

# The text of log.csv, and words of the message, the last ones the remedy.
TEXTS = [
    ("", "the file is empty"),
    ("u,i,r\n", "there are no rows"),
    ("user,i,r\n1,2,3\n", "no column 'u' for the user; it has 'user', 'i', 'r'; try user='user'"),
    ("x" * 1000 + ",item\n1,2\n", "no column 'u'"),
    ("u,i,r\n1,2,3\n,2,3\n", "column 'u', line 3: there is no id; drop"),
    ("u,i,r\n1,2,\n", "column 'r', line 2: there is no number; drop"),
    ("u,i,r\n1,2,3\n1,2,nan\n", "column 'r', line 3: there is no number"),
    ("u,i,r\n1,2,3\n1,2,x\n", "line 3: column 'r' holds 'x', not a number; correct it"),
    (f"u,i,r\n1,2,{'x' * 5000}\n", "line 2: column 'r' holds 'x", "…', not a number"),
    ("u,i,r\n1,2,3\n1,2\n", "line 3: it has 2 fields, not 3", "is it cut off"),
    ("u,i,r\n1\n", "line 2: it has 1 field, not 3"),
    ("u,i,r\n1,2,3,4\n", "line 2: it has 4 fields, not 3"),
    ("u i r\n1 2 3\n", "'u i r', is not separated by ','; try separator=' '"),
    ("u;i;r\n1;2;3\n", "'u;i;r', is not separated by ','; try separator=';'"),
    ("u::i::r\n1::2::1,5\n", "is not separated by ','; try separator='::'"),
    ("\nu,i,r\n1,2,3\n", "line 1 is empty; remove the empty lines"),
    ('"u\n",i,r\n1,2,3\n', "line 1 ends within quotes; close the quote, or"),
    ("x" * 140_000 + ",u,i,r\n", "line 1 has a field of more than 131,072 char"),
    ("x," * 600_000 + "\n", "line 1 has 1,048,576 characters or more; is this a text"),
    (OPEN, "longer than 8 MiB; is a quote not"),
    ("u,i,r\n1,2,0.5\n", "no row has a rating of 1 or more; lower min_rating"),
    (b"u,i,r\n1,2,3\n\xff\xe9,2,3\n", "line 3: it is not written in UTF-8; try enc"),
    (b"\xff\xe9,i,r\n1,2,3\n", "line 1: it is not written in UTF-8; try encoding="),
    (b"PAR1\x15\x04", "it is a Parquet file; try from_parquet"),
    (gzip.compress(b"u,i,r\n1,2,3\n"), "it is compressed by gzip; give it the suffix .gz"),
    ("u,i,r\n1,2,3\n".encode("utf-16"), "it is written in UTF-16; try encoding='utf-16'"),
]
NO_HEADER = {"user": 0, "item": 1, "header": False}
TEXTS += [
    ("1::2::3\n1::2\n", NO_HEADER | {"separator": "::"}, "line 2: it has 2 fields, not 3"),
    ("1,2\n", NO_HEADER | {"item": 2}, "no column 2 for the item; it has '0', '1'"),
    ("1,2,1\n\n1,3,x\n", NO_HEADER | {"weight": 2}, "line 3: column"),
    ("1,2,1\n\n1,3,-4\n", NO_HEADER | {"weight": 2}, "line 3: the weight is negative"),
    ("a;1\n", NO_HEADER, "is not separated by ','; try separator=';'"),
]
# The line that is in another encoding is named.
for content, encoding, line in (
    ("user,item\n1,2\n".encode("utf-16")[:-1], "utf-16", 2),
    (b"user,item\n1,2\n\xff,3\n", "utf-8-sig", 3),
    (b"user,item\n1,2\n2,5\n\x9d,3\n", "cp1252", 4),
):
    told = f"line {line}: it is not written in ", "; try enc"
    TEXTS.append((content, {"encoding": encoding}, *told))
# Lines are those of the file, whatever stands before them.
for before, line in (
    ("u,i,r\n1,2,1\n\n\n", 5),
    ('u,i,r\n"a\nb",2,1\n', 4),
    ("u,i,r\r\n\r\n", 3),
    ("u,i,r\n" + '"a\n",2,1\n' * 40_000, 80_002),
):
    TEXTS += [
        (before + "1,3,x\n", f"line {line}: column"),
        (before + "1,3,\n", f"line {line}: there is no number"),
        (before + "1,3\n", f"line {line}: it has 2 fields, not 3"),
    ]


@pytest.mark.parametrize("case", range(len(TEXTS)))
def test_texts(tmp_path, case):
    content, *words = TEXTS[case]
    options = words.pop(0) if isinstance(words[0], dict) else READ
    path = tmp_path / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (Interactions.from_csv, datasets.read):
        with refused(ValueError, "log.csv: ", *words) as caught:
            read(path, **options)
        assert len(str(caught.value)) < 350 + len(str(tmp_path))


@pytest.mark.parametrize("count", [1, 100, 40_000])
def test_a_quote_that_is_not_closed(tmp_path, count):
    rows = [f"u{at % 7},i{at}\n" for at in range(count)]
    rows[count // 2] = rows[count // 2].replace(",", ',"')
    (tmp_path / "log.csv").write_text("user,item\n" + "".join(rows))
    with refused(ValueError, f"log.csv: line {count // 2 + 2}: a quote is opened and"):
        Interactions.from_csv(tmp_path)


BEYOND = pa.DictionaryArray.from_arrays(pa.array([7]), pa.array(["a"]), safe=False)
OFFSETS = pa.py_buffer(np.array([0, 1], dtype=np.int32))
NO_UTF8 = pa.StringArray.from_buffers(1, OFFSETS, pa.py_buffer(b"\xff"))

ZONED = ["2024-05-01T11:00", "2024-05-01T11:00Z"]

# A column of a table, its values, and words of the message.
COLUMNS = [
    ("user", [1.5], "column 'user' holds double, not ids; cast it"),
    ("item", [True], "column 'item' holds bool"),
    ("item", [7, 8, None], "column 'item', row 2 (counted from 0)", "there is no id; drop such"),
    ("user", pa.array([2**63], pa.uint64()), "above 2^63 - 1; cast"),
    ("rating", ["5"], "'rating' holds string, not numbers; cast"),
    ("rating", [5, 5, None], "'rating', row 2", "there is no number"),
    ("weight", [1, 1, float("nan")], "'weight', row 2", "no number"),
    ("weight", [1, -1], "'weight', row 1", "is negative; drop"),
    ("weight", [1, 1, 1, float("inf")], "'weight', row 3", "is above 1e+12"),
    ("when", pa.array([1], pa.duration("s")), "column 'when' holds duration[s], not times"),
    ("when", pa.array([1], pa.time32("ms")), "column 'when' holds time32[ms], not times"),
    ("when", [True], "column 'when' holds bool, not times"),
    ("when", [1, None], "'when', row 1", "there is no time; drop such rows"),
    ("when", [1, 1, float("nan")], "'when', row 2", "there is no time"),
    ("when", ["2024-05-01", "tomorrow"], "'when', row 1", "'tomorrow' is no time"),
    ("when", ["2024-05-01", "x" * 5000], "'when', row 1", "x…' is no time"),
    ("when", ZONED, "'when', row 1", "in another way than those before", "a zone or none"),
    ("when", [1, 10**12], "'when', row 1", "the year 9999; divide milliseconds by 1000"),
]


@pytest.mark.parametrize("case", range(len(COLUMNS)))
def test_columns_of_frames_and_files(tmp_path, case):
    name, values, *words = COLUMNS[case]
    names = ("user", "item", "rating", "weight", "when")
    table = pa.table(dict.fromkeys(names, [1] * len(values)) | {name: values})
    options = {"rating": "rating", "weight": "weight", "min_rating": 1}
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=2)
    with refused((TypeError, ValueError), "log.parquet: ", *words):
        datasets.read(tmp_path / "log.parquet", timestamp="when", **options)
    if name == "when":
        return
    with refused((TypeError, ValueError), "log.parquet: ", *words):
        Interactions.from_parquet(tmp_path, **options)
    with refused((TypeError, ValueError), "frame: ", *words):
        Interactions.from_frame(table, **options)


def test_times_in_text_name_the_line(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,when\na,1,5\n\na,2,5.5\nb,1,noon\nb,2,7\n")
    with refused(ValueError, "log.csv: column 'when', line 5: 'noon' is no time"):
        datasets.read(tmp_path / "log.csv", timestamp="when")


BAD, PAIR = {"user": [1], "item": [1]}, {"user": ["a", "a"], "item": [1, 1]}
FRAMES = [
    (None, {}, "frame is of type NoneType", "try pyarrow"),
    ([[1, 2]], {}, "frame is of type list", "try pyarrow"),
    (pd.Series([1]), {}, "frame is of type Series, not a DataFrame"),
    (pl.LazyFrame(BAD), {}, "LazyFrame", ".collect() first"),
    (pd.DataFrame([[1, 2, 3]], columns=["user", "user", "item"]), {}, "there are 2 columns 'user'"),
    (pd.DataFrame({"user": [1, "a"], "item": [1, 2]}), {}, "column 'user': Could not convert"),
    (pd.DataFrame({"user": ["a", None], "item": [1, 2]}), {}, "'user', row 1 (counted from 0)"),
    (pd.DataFrame({"user": [1, np.nan], "item": [1, 2]}), {}, "'user' holds double, not ids; cast"),
    (pd.DataFrame({"user": [pd.Period("2020-01")], "item": 1}), {}, "extension<pandas.period"),
    *((BAD | {"user": column}, {}, "'user' is a") for column in ("ab", b"ab", {1, 2}, {1: 2})),
    (BAD | {"user": [2**70]}, {}, "column 'user': ", "cast it to numbers or to str"),
    (BAD | {"item": [1, 2]}, {}, "frame: its columns have 1 and 2 rows; give all of them"),
    (BAD | {"item": ["a\ud800"]}, {}, r"'item' holds 'a\ud800', which is no valid text"),
    (pa.table(BAD | {"user": BEYOND}), {}, "column 'user' is damaged (", "write it anew"),
    (pa.table(BAD | {"user": NO_UTF8}), {}, "'user', row 0", "it is not UTF-8; write it"),
    (BAD | {"weight": [0]}, {"weight": "weight"}, "no interaction is left of 1 rows: all weights"),
    *((BAD, {"user": column}, "user=", "give the name of a column, or its position")
      for column in (None, True, 1.5, ["user"])),
    (BAD, {"item": "user"}, "column 'user' is given both for the user and for the item; choose"),
    (BAD, {"item": 0}, "column 'user' is given both for the user and for the item; choose"),
    (BAD, {"rating": "r", "min_rating": 4}, "no column 'r'", "choose another one by rating="),
    (BAD, {"min_rating": 4}, "no column holds the ratings; try rating="),
    (BAD, {"rating": "item", "min_rating": "2"}, "min_rating='2'; it has to be a number"),
    (BAD, {"duplicates": "mean"}, "unknown way to treat duplicates 'mean': known are 'sum'"),
    (BAD, {"min_user_interactions": 0}, "min_user_interactions=0 has to be at least 1"),
    (BAD, {"min_item_interactions": 2}, "no interaction is left of 1 rows: lower min_user"),
    (PAIR, {"duplicates": "error"}, "1 rows repeat an earlier one, such as user 'a' with item 1"),
    (PAIR | {"w": [9e11] * 2}, {"weight": "w"}, "of user 'a' with item 1 add up to 1.8e+12, above"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FRAMES)))
def test_frames(case):
    frame, options, *words = FRAMES[case]
    with refused((TypeError, ValueError), *words):
        Interactions.from_frame(frame, **options)


SEPARATORS = ("", "ab", ":::", '"', "\n", "\r", "\0", "é", None, 7)
ENCODINGS = ("rot13", "hex", "undefined", "nonsense", "utf8\0", 3)


def test_arguments(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    for separator in SEPARATORS:
        with refused(ValueError, "has to be one ASCII character, but no quote or line br"):
            Interactions.from_csv(tmp_path, separator=separator)
    for encoding in ENCODINGS:
        with refused(ValueError, "is no known text encoding; try 'utf8', 'latin-1' or"):
            Interactions.from_csv(tmp_path, encoding=encoding)
    for paths in (b"log.csv", 3, None, [3], [b"log.csv"]):
        with refused(TypeError, "is no path; give a path, a folder or a pattern as str"):
            Interactions.from_csv(paths)


def test_missing_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.csv").write_text("user,item\n1,2\n")
    for path, words in (
        ("nowhere.csv", "nowhere.csv: there is no such file, seen from"),
        ("no*.csv", "no file matches the pattern"),
        ("log\0.csv", "there is no such file"),
        ("", "the path is empty; give a file, or '.' for this"),
    ):
        with refused(FileNotFoundError, words):
            Interactions.from_csv(path)
    assert Interactions.from_csv(".").nnz == 1
    with refused(FileNotFoundError, "has no file that ends in .parquet"):
        Interactions.from_parquet(tmp_path)
    with refused(FileNotFoundError, "list of paths is empty"):
        Interactions.from_parquet([])


def test_damaged_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pa.table({"user": range(1000), "item": range(1000)}), path)
    whole = path.read_bytes()
    for content in (b"", b"user,item\n1,2\n", whole[:-20], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with refused(ValueError, "log.parquet: it is no Parquet file, or cut off"):
            Interactions.from_parquet(path)
    path.write_bytes(whole[:4] + bytes(196) + whole[200:])
    with refused(ValueError, "log.parquet: it is ", "damaged", "again"):
        Interactions.from_parquet(path)


def test_ids_of_two_types(tmp_path):
    pyarrow.parquet.write_table(pa.table({"user": [1], "item": [1]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"user": ["a"], "item": [1]}), tmp_path / "2.parquet")
    with refused(TypeError, "2.parquet: the users are strings, but integers in ", "1.parquet"):
        Interactions.from_parquet(tmp_path)


def structure(indptr=(0, 1, 2, 3), indices=(0, 1, 2), data=(1, 1, 1)):
    return raw_csr(np.float32(data), np.array(indices), np.array(indptr), (3, 3))


def holding(value, form="csr"):
    values = EXAMPLE.astype(np.float64)
    values[2, 0] = value
    return getattr(sp, f"{form}_matrix")(values)


ONE = np.int32([0, 0]), np.int32([0, 2]), (1, 1)
MATRICES = [
    (EXAMPLE, "user_items is of type ndarray", "try scipy.sparse.csr_matrix(user_items)"),
    (None, "user_items is of type NoneType"),
    *((kind({"user": [1], "item": [3]}), "try Interactions.from_frame(user_items, user=")
      for kind in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, dict)),
    (sp.csr_matrix([[1e-45, 0], [0, 1e-45]]), "has no weight above 1e-45", "scale them"),
    (sp.csr_matrix(EXAMPLE.astype(complex)), "values of type complex128", "astype('float32')"),
    (sp.csr_matrix((0, 3)), "its shape is 0 x 3; give"),
    (sp.coo_matrix((3, 0)), "its shape is 3 x 0; give"),
    (sp.csr_matrix((4, 3)), "any of its 4 rows; check the filter"),
    (raw_csr([0.0], [1], [0, 1], (1, 3)), "any of its 1 rows; check the filter"),
    (sp.csr_matrix((2, 2**31)), "number the users and items"),
    (raw_csr(np.float32([9e11] * 2), *ONE), "holds 17", ".0 at row 0, column 0", "clip"),
    (raw_csr(np.float32([3, -1]), *ONE), "holds -1.0 at row 0, column 0"),
    (sp.coo_matrix(([3.0, -1.0], ([0, 0], [0, 0]))), "holds -1.0 at row 0, column 0"),
    (structure([0, 2, 1, 3]), "indptr falls from 2 to 1 at row 1", "; build it anew"),
    (structure([0, 1, 3]), "indptr has shape (3,), where 3 rows need (4,)"),
    (structure([1, 1, 2, 3]), "indptr starts at 1, not at 0"),
    (structure([0, 1, 2, 4]), "indptr ends at 4, but indices have shape (3,)"),
    (structure(data=[1, 1]), "indices have shape (3,) and data (2,)"),
    (structure(indices=[0, 1]), "indices have shape (2,) and data (3,)"),
    (structure(indices=[0.0, 1.0, 2.0]), "have to hold integers"),
    *((structure(indices=[0, 1, column]), f"row 2 holds column {column}, outside of 0 to 2; check")
      for column in (3, -1, 2**40)),
    *((holding(value, form), f"holds {value} at row 2, column 0; ", remedy)
      for form, value, remedy in (
          ("csr", np.nan, "drop the entry"), ("csr", np.inf, "clip"), ("csr", -np.inf, "negative"),
          ("csr", -0.5, "drop negative"), ("csr", 1e39, "clip or scale"), ("coo", np.nan, "drop"),
          ("csc", np.inf, "clip"), ("bsr", -0.5, "drop"), ("lil", 1e39, "clip"),
          ("dok", np.nan, "drop"), ("dia", np.inf, "clip"))),
]  # fmt: skip
if N_DIMENSIONAL:  # scipy has only 2-D sparse arrays before 1.15
    MATRICES += [(sp.coo_array(np.array([0.0, 1])), "has 1 dimension(s)", "reshape(1, -1)")]


@pytest.mark.filterwarnings("ignore::safecf.ParameterWarning")
@pytest.mark.parametrize("case", range(len(MATRICES)))
def test_matrices(case):
    matrix, *words = MATRICES[case]
    with refused((TypeError, ValueError), "user_items", *words):
        Interactions.from_csr(matrix)


@pytest.mark.parametrize("container", [sp.csc_matrix, sp.bsr_matrix, sp.coo_matrix])
@pytest.mark.parametrize("index", [7, -1])
def test_damaged_arrays_of_other_formats(container, index):
    matrix = container(EXAMPLE)
    for array in [matrix.row, matrix.col] if container is sp.coo_matrix else [matrix.indices]:
        array[-1] = index
    word = "outside of 0 to 2; check" if container is sp.coo_matrix else "is damaged: "
    with pytest.warns(ParameterWarning), refused(ValueError, "user_items", word):
        Interactions.from_csr(matrix)


def test_ids_of_a_matrix():
    matrix = sp.csr_matrix([[1.0], [1.0]])
    with refused(ValueError, r"user_ids holds 'a\ud800' at 1, which is no valid text"):
        Interactions.from_csr(matrix, user_ids=["b", "a\ud800"])
