"""Every bad input gets one clear error that says what, where, and what to try."""

import decimal
import gzip

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import Interactions, datasets
from safecf.data.reading import delimited, sources

READ = {"user": "u", "item": "i", "rating": "r", "min_rating": 1}

TEXTS = {
    "empty": ("", r"log\.csv: the file is empty"),
    "header only": ("u,i,r\n", r"log\.csv: there are no rows"),
    "missing column": (
        "user,i,r\n1,2,3\n",
        r"log\.csv: there is no column 'u' for the user; it has 'user', 'i', 'r'; try user='user'",
    ),
    "no user": ("u,i,r\n1,2,3\n,2,3\n", r"column 'u', line 3: there is no id; drop"),
    "no rating": ("u,i,r\n1,2,\n", r"column 'r', line 2: there is no number; drop"),
    "NaN": ("u,i,r\n1,2,3\n1,2,nan\n", r"column 'r', line 3: there is no number"),
    "words": ("u,i,r\n1,2,3\n1,2,x\n", r"line 3: column 'r' holds 'x', not a number; correct it"),
    "cut off": ("u,i,r\n1,2,3\n1,2\n", r"line 3: it has 2 fields, not 3 .*is it cut off"),
    "cut off early": ("u,i,r\n1\n", r"line 2: it has 1 field, not 3 .*is it cut off"),
    "too long": ("u,i,r\n1,2,3,4\n", r"line 2: it has 4 fields, not 3"),
    "spaces": ("u i r\n1 2 3\n", r"'u i r', is not separated by ','; try separator=' '"),
    "spaces in names": ("a u,the i\n1,2\n", r"there is no column 'u' for the user"),
    "other separator": ("u;i;r\n1;2;3\n", r"'u;i;r', is not separated by ','; try separator=';'"),
    "header without line break": ("u,i,r", r"log\.csv: there are no rows"),
    "empty first line": ("\nu,i,r\n1,2,3\n", "line 1 is empty; remove the empty lines"),
    "quote in the header": ('"u\n",i,r\n1,2,3\n', "line 1 ends within quotes; close the quote, or"),
    "long field": ("x" * 140_000 + ",u,i,r\n", r"line 1 has a field of more than 131,072 char"),
    "long line": (
        "x," * 600_000 + "\n",
        r"line 1 has 1,048,576 characters or more; is this a text",
    ),
    "open quote": ('u,i,r\n1,"2,3\n' + "1,2,3\n" * 3_000_000, "longer than 8 MiB; is a quote not"),
    "low ratings": ("u,i,r\n1,2,0.5\n", r"no row has a rating of 1 or more; lower min_rating"),
    "not UTF-8": (b"u,i,r\n1,2,3\n\xff\xe9,2,3\n", r"line 3: it is not written in UTF-8; try enc"),
    "not UTF-8 header": (
        b"\xff\xe9,i,r\n1,2,3\n",
        r"line 1: it is not written in UTF-8; try encoding=",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_bad_text(tmp_path, case):
    content, message = TEXTS[case]
    path = tmp_path / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        Interactions.from_csv(path, **READ)
    assert "log.csv" in str(caught.value)
    with pytest.raises(ValueError, match=message):
        datasets.read(path, **READ)


def test_lines_are_counted_over_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BYTES_PER_BATCH", 64)
    path = tmp_path / "log.csv"
    lines = [f"{n},{n},3\n" for n in range(200)]
    for bad, message in (
        (",1,1\n", "column 'u', line 152: there is no id"),
        ("1,1,x\n", "line 152"),
    ):
        path.write_text("u,i,r\n" + "".join([*lines[:150], bad, *lines[150:]]))
        with pytest.raises(ValueError, match=message):
            Interactions.from_csv(path, **READ)


@pytest.mark.parametrize("separator", ["", "ab", ":::", '"', "\n", "\r", "\0", "é", None, 7])
def test_bad_separators(tmp_path, separator):
    (tmp_path / "log.csv").write_text("u,i\n1,2\n")
    with pytest.raises(ValueError, match="has to be one ASCII character, but no quote or line br"):
        Interactions.from_csv(tmp_path, separator=separator)


def test_short_lines_with_a_double_separator(tmp_path):
    (tmp_path / "log.dat").write_text("1::2::3\n1::2\n")
    with pytest.raises(ValueError, match=r"line 2: it has 2 fields, not 3"):
        Interactions.from_csv(tmp_path, user=0, item=1, header=False, separator="::")


@pytest.mark.parametrize("item", ["user", 0])
def test_one_column_for_users_and_items(tmp_path, item):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    message = "column 'user' is given both for the user and for the item; choose another one by"
    with pytest.raises(ValueError, match=message):
        Interactions.from_csv(tmp_path / "log.csv", item=item)
    with pytest.raises(ValueError, match=message):
        Interactions.from_frame({"user": [1], "item": [2]}, item=item)


def test_positions_beyond_the_last_column(tmp_path):
    (tmp_path / "log.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"no column 2 for the item; it has '0', '1'"):
        Interactions.from_csv(tmp_path, user=0, item=2, header=False)


COLUMNS = {
    "floats": ({"user": [1.5]}, TypeError, "column 'user' holds double, not ids"),
    "lists": ({"user": [[1]]}, TypeError, "column 'user' holds list"),
    "booleans": ({"item": [True]}, TypeError, "column 'item' holds bool"),
    "nothing but nulls": ({"item": [None]}, ValueError, "column 'item', row 0 .* no id"),
    "text rating": ({"rating": ["5"]}, TypeError, "'rating' holds string, not numbers; cast"),
    "null rating": ({"rating": pa.array([None], pa.int8())}, ValueError, "'rating', row 0"),
    "NaN weight": ({"weight": [float("nan")]}, ValueError, "'weight', row 0 .*no number"),
    "negative weight": ({"weight": [-1]}, ValueError, "'weight', row 0 .*is negative; drop"),
    "endless weight": ({"weight": [float("inf")]}, ValueError, "'weight', row 0 .*is above 1e.12"),
    "zero weight": ({"weight": [0]}, ValueError, "no interaction is left of 1 rows: all weights"),
    "huge id": ({"user": pa.array([2**63], pa.uint64())}, ValueError, r"above 2\^63 - 1; cast"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_bad_columns(tmp_path, case):
    changed, error, message = COLUMNS[case]
    table = pa.table({"user": [1], "item": [1], "rating": [5], "weight": [1]} | changed)
    options = {"rating": "rating", "weight": "weight", "min_rating": 1}
    with pytest.raises(error, match=f"(frame: )?.*{message}"):
        Interactions.from_frame(table, **options)
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(error, match=message):
        Interactions.from_parquet(tmp_path / "log.parquet", **options)


def test_decimals_are_numbers():
    table = pa.table({"user": [1, 1], "item": [1, 2], "weight": [decimal.Decimal("2.5")] * 2})
    assert Interactions.from_frame(table, weight="weight").users.weights.tolist() == [2.5, 2.5]


def test_rows_are_counted_over_parquet_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROWS_PER_BATCH", 3)
    table = pa.table({"user": [1] * 10 + [None], "item": list(range(11))})
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=4)
    with pytest.raises(ValueError, match=r"log\.parquet: column 'user', row 10 \(counted from 0"):
        Interactions.from_parquet(tmp_path)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pa.table({"user": range(1000), "item": range(1000)}), path)
    whole = path.read_bytes()
    for content in (b"", b"user,item\n1,2\n", whole[:-20], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"log\.parquet: it is no Parquet file, or cut off"):
            Interactions.from_parquet(path)
    damaged = bytearray(whole)
    damaged[4:200] = bytes(196)
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"log\.parquet: it is .*damaged .*again"):
        Interactions.from_parquet(path)


def test_missing_parquet_column(tmp_path):
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pa.table({"userId": [1], "movieId": [2]}), path)
    message = r"log\.parquet: there is no column 'user' .*'userId', 'movieId'; try user='userId'"
    with pytest.raises(ValueError, match=message):
        Interactions.from_parquet(path)


def test_ids_of_two_types(tmp_path):
    pyarrow.parquet.write_table(pa.table({"user": [1], "item": [1]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"user": ["a"], "item": [1]}), tmp_path / "2.parquet")
    with pytest.raises(
        TypeError, match=r"2\.parquet: the users are strings, but integers in .*1\."
    ):
        Interactions.from_parquet(tmp_path)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv: there is no such file, seen from"):
        Interactions.from_csv(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="no file matches the pattern"):
        Interactions.from_csv(str(tmp_path / "*.csv"))
    with pytest.raises(FileNotFoundError, match=r"has no file that ends in \.parquet"):
        Interactions.from_parquet(tmp_path)
    with pytest.raises(FileNotFoundError, match="list of paths is empty"):
        Interactions.from_parquet([])


def test_bad_options():
    frame = {"user": [1], "item": [1]}
    with pytest.raises(ValueError, match="no column holds the ratings; try rating="):
        Interactions.from_frame(frame, min_rating=4)
    with pytest.raises(ValueError, match="unknown way to treat duplicates 'mean': known are 'sum'"):
        Interactions.from_frame(frame, duplicates="mean")
    with pytest.raises(ValueError, match="min_user_interactions=0 has to be at least 1"):
        Interactions.from_frame(frame, min_user_interactions=0)
    with pytest.raises(ValueError, match=r"no interaction is left of 1 rows: lower min_user"):
        Interactions.from_frame(frame, min_item_interactions=2)


def test_duplicates_error():
    frame = {"user": ["a", "b", "b", "b"], "item": [7, 7, 8, 8]}
    with pytest.raises(
        ValueError, match="1 rows repeat an earlier one, such as user 'b' with item 8"
    ):
        Interactions.from_frame(frame, duplicates="error")


@pytest.mark.parametrize("frame", [None, 3, [[1, 2]], "log.csv"])
def test_other_types_are_no_frames(frame):
    with pytest.raises(TypeError, match=f"frame is of type {type(frame).__name__}, .*try pyarrow"):
        Interactions.from_frame(frame)


LINES = {
    "empty lines": ("u,i,r\n1,2,1\n\n\n1,3,{}\n", 5),
    "quoted lines": ('u,i,r\n"a\nb",2,1\n1,3,{}\n', 4),
    "empty lines, no header": ("1,2,1\n\n1,3,{}\n", 3),
    "carriage returns": ("u,i,r\r\n\r\n1,3,{}\r\n", 3),
}


@pytest.mark.parametrize("case", LINES)
def test_errors_name_the_line_of_the_file(tmp_path, case):
    text, line = LINES[case]
    header = text.startswith("u")
    columns = {"user": "u", "item": "i"} if header else {"user": 0, "item": 1}
    rating = "r" if header else 2
    path = tmp_path / "log.csv"
    for value, message in (("x", f"line {line}: column"), ("", f"line {line}: there is no number")):
        path.write_bytes(text.format(value).encode())
        with pytest.raises(ValueError, match=message):
            Interactions.from_csv(path, **columns, rating=rating, min_rating=1, header=header)
    path.write_bytes(text.format("-4").encode())
    with pytest.raises(ValueError, match=f"line {line}: the weight is negative"):
        Interactions.from_csv(path, **columns, weight=rating, header=header)
    path.write_bytes(text.replace(",{}", "").encode())
    with pytest.raises(ValueError, match=f"line {line}: it has 2 fields, not 3"):
        Interactions.from_csv(path, **columns, header=header)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "log.csv"
    for content, message in (
        (b"PAR1\x15\x04", "it is a Parquet file; try from_parquet"),
        (gzip.compress(b"user,item\n1,2\n"), r"it is compressed by gzip; give it the suffix \.gz"),
        ("user,item\n1,2\n".encode("utf-16"), "it is written in UTF-16; try encoding='utf-16'"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"log\.csv: {message}"):
            Interactions.from_csv(path)
    with pytest.raises(
        ValueError, match="encoding='nonsense' is no known text encoding; try 'utf8'"
    ):
        Interactions.from_csv(path, encoding="nonsense")


def test_no_close_column_name_and_min_rating_of_another_type():
    with pytest.raises(ValueError, match=r"no column 'rating' .*; choose another one by rating=$"):
        Interactions.from_frame({"user": [1], "item": [1]}, rating="rating", min_rating=4)
    with pytest.raises(TypeError, match="min_rating='2'; it has to be a number"):
        Interactions.from_frame({"user": [1], "item": [1]}, rating="rating", min_rating="2")


def test_weights_whose_sum_overflows():
    frame = {"user": ["a", "a"], "item": [1, 1], "w": [9e11, 9e11]}
    message = "the weights of user 'a' with item 1 add up to 1.8e.12, above 1e.12; scale them"
    with pytest.raises(ValueError, match=message):
        Interactions.from_frame(frame, weight="w")
    found = Interactions.from_frame(frame, weight="w", duplicates="max")
    assert found.to_csr().data.tolist() == pytest.approx([9e11])
