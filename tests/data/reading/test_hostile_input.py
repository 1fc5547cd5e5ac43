"""Whatever is read gives interactions or one clear error, and never another kind of exception."""

import encodings.aliases
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safecf import Interactions

REFUSED = (ValueError, TypeError, OSError)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refuse(read):
    """Read; return what is wrong with the input, an empty string if nothing is."""
    try:
        found = read()
    except REFUSED as problem:
        return str(problem)
    assert found.nnz > 0
    return ""


@pytest.mark.parametrize(
    "encoding", sorted({*encodings.aliases.aliases.values(), "idna", "utf8\0"})
)
@pytest.mark.parametrize("text", ["user,item\n1,2\n", "user,item\n1,é\n"])
def test_every_encoding_reads_or_is_refused(tmp_path, encoding, text):
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1"))
    told = read_or_refuse(lambda: Interactions.from_csv(path, encoding=encoding))
    assert not told or "encoding" in told or "no column" in told or "separator" in told


@pytest.mark.parametrize("encoding", ["rot13", "base64", "hex", "zlib", "undefined", "nonsense", 3])
def test_encodings_of_no_text(tmp_path, encoding):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    with pytest.raises(ValueError, match="is no known text encoding; try 'utf8', 'latin-1' or"):
        Interactions.from_csv(tmp_path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-7", "latin-1", "shift_jis", "cp037"])
def test_text_in_other_encodings(tmp_path, encoding):
    (tmp_path / "log.csv").write_bytes("user,item\nann,7\nbob,8\n".encode(encoding))
    found = Interactions.from_csv(tmp_path, encoding=encoding)
    assert found.user_ids.tolist() == ["ann", "bob"]


@pytest.mark.parametrize("separator", [";", "\t", "|", "::"])
@pytest.mark.parametrize("header", [True, False])
def test_the_right_separator_is_suggested(tmp_path, separator, header):
    lines = [separator.join(("user", "item", "w"))] if header else []
    lines += [separator.join(("ann", "7", "1,5"))]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    columns = {} if header else {"user": 0, "item": 2, "header": False}
    with pytest.raises(ValueError, match="is not separated by ','; try separator=") as told:
        Interactions.from_csv(tmp_path, **columns)
    assert str(told.value).endswith(f"try separator={separator!r}")
    assert Interactions.from_csv(tmp_path, separator=separator, **columns).nnz == 1


TEXTS = st.text(st.sampled_from("user,item\n\r\"'1 \t;:\0\x0b\x0c\x1c\x85\u2028é"), max_size=60)


@in_one_folder
@given(st.one_of(TEXTS.map(str.encode), st.binary(max_size=60)), st.booleans(), st.booleans())
def test_any_text(tmp_path, content, named, header):
    path = tmp_path / "log.csv"
    path.write_bytes((b"user,item\n" if named else b"") + content)
    columns = {} if header else {"user": 0, "item": 1}
    read_or_refuse(lambda: Interactions.from_csv(path, header=header, **columns))


@in_one_folder
@given(st.data(), st.sampled_from(["log.parquet", "log.csv.gz"]))
def test_damaged_files(tmp_path, data, name):
    path = tmp_path / name
    if name.endswith("gz"):
        content = gzip.compress(b"user,item\n" + b"1,2\n3,4\n" * 50)
    else:
        pyarrow.parquet.write_table(pa.table({"user": [1, 2] * 50, "item": ["a", "b"] * 50}), path)
        content = path.read_bytes()
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged[: data.draw(st.integers(len(damaged) // 2, len(damaged)))])
    read = Interactions.from_csv if name.endswith("gz") else Interactions.from_parquet
    read_or_refuse(lambda: read(path))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),  # lone surrogates, too
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.lists(st.integers()),
)


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    st.sampled_from([list, tuple, np.array, pd.Series, pd.Categorical, pa.array]),
    st.sampled_from(["user", "item", "weight"]),
)
def test_any_values_in_a_frame(values, kind, role):
    frame = {"user": range(len(values)), "item": range(len(values)), "weight": [1] * len(values)}
    try:
        frame[role] = kind(values)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return  # numpy, pandas or Arrow refuse to make the column
    read_or_refuse(lambda: Interactions.from_frame(frame, weight="weight"))


@pytest.mark.parametrize("column", ["ab", b"ab", {1, 2}, frozenset({1}), {1: 2}])
def test_columns_without_an_order_are_refused(column):
    with pytest.raises(TypeError, match=r"column 'user' is a .*; give an array or a list with one"):
        Interactions.from_frame({"user": column, "item": [1, 2]})


def test_lone_surrogates_are_refused():
    message = r"holds 'a\\ud800', which is no valid text; replace the surrogates"
    with pytest.raises(ValueError, match=f"frame: column 'item' {message}"):
        Interactions.from_frame({"user": [1, 2], "item": ["b", "a\ud800"]})
    with pytest.raises(ValueError, match=f"frame: column 'item' {message}"):
        Interactions.from_frame({"user": [1, 2], "item": np.array(["b", "a\ud800"])})
    matrix = sp.csr_matrix([[1.0], [1.0]])
    with pytest.raises(ValueError, match=r"user_ids holds 'a\\ud800' at 1, which is no valid text"):
        Interactions.from_csr(matrix, user_ids=["b", "a\ud800"])


def test_periods_are_no_ids():
    """They are kept as numbers of months, which nobody has seen."""
    months = pd.DataFrame({"user": pd.period_range("2020-01", periods=2, freq="M"), "item": 1})
    with pytest.raises(TypeError, match=r"column 'user' holds extension<pandas.period.*not ids"):
        Interactions.from_frame(months)


def test_damaged_arrow_arrays_are_refused():
    offsets = pa.py_buffer(np.array([0, 1], dtype=np.int32))
    wrong = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff"))
    beyond = pa.DictionaryArray.from_arrays(pa.array([7]), pa.array(["a"]), safe=False)
    coded = pa.DictionaryArray.from_arrays(pa.array([0]), wrong)
    for ids in (beyond, coded):
        with pytest.raises(ValueError, match=r"column 'user' is damaged \(.*\); write it anew"):
            Interactions.from_frame(pa.table({"user": ids, "item": [1]}))
    ids = pa.chunked_array([["a", "b"], wrong])
    with pytest.raises(ValueError, match=r"column 'user', row 2 .*: it is not UTF-8; write it"):
        Interactions.from_frame(pa.table({"user": ids, "item": [1, 2, 3]}))


@pytest.mark.parametrize("paths", [b"log.csv", 3, None, [3], [b"log.csv"]])
def test_paths_of_other_types(paths):
    with pytest.raises(TypeError, match="is no path; give a path, a folder or a pattern as str"):
        Interactions.from_csv(paths)


def test_an_empty_path_is_not_this_folder(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"the path is empty; give a file, or '\.' for this"
    ):
        Interactions.from_csv("")
    assert Interactions.from_csv(".").nnz == 1
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        Interactions.from_csv("log\0.csv")


@pytest.mark.parametrize("column", [None, True, 1.5, ["user"], ("user",)])
def test_columns_are_names_or_positions(column):
    with pytest.raises(TypeError, match=r"user=.*; give the name of a column, or its position"):
        Interactions.from_frame({"user": [1], "item": [2]}, user=column)


def test_a_series_is_no_frame():
    with pytest.raises(TypeError, match="frame is of type Series, not a DataFrame"):
        Interactions.from_frame(pd.Series([1]))


def test_long_column_names_are_shortened(tmp_path):
    (tmp_path / "log.csv").write_text("x" * 1000 + ",item\n1,2\n")
    with pytest.raises(ValueError, match="no column 'user'") as told:
        Interactions.from_csv(tmp_path)
    assert len(str(told.value)) < 300 + len(str(tmp_path))
