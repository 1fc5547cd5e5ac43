"""Whatever is read gives whole interactions or one line that says why not."""

import encodings.aliases
import gzip
import io
import warnings
import zipfile
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safecf import Interactions
from tests.data.matrices.matrices import raw_csr
from tests.helpers import REMEDY

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refuse(read):
    """Read; return what is wrong with the input, an empty string if nothing is."""
    try:
        found = read()
    except (ValueError, TypeError, OSError) as problem:
        text = str(problem)
        assert "\n" not in text
        assert REMEDY.search(text), text
        return text
    check_whole(found)
    return ""


def check_whole(found):
    assert found.nnz > 0
    for side, other in ((found.users, found.items), (found.items, found.users)):
        assert (side.indptr[0], side.indptr[-1]) == (0, side.indices.size)
        assert (np.diff(side.indptr) >= 0).all()
        assert ((side.indices >= 0) & (side.indices < other.num_rows)).all()
        assert (side.indptr.dtype, side.indices.dtype) == (np.int64, np.int32)
        assert side.weights is None or ((side.weights > 0) & (side.weights <= 1e12)).all()
        assert side.weights is None or side.weights.dtype == np.float32
    assert (found.items.to_scipy() != found.users.to_scipy().T).nnz == 0
    for ids, size in ((found.user_ids, found.num_users), (found.item_ids, found.num_items)):
        assert ids is None or len(set(ids.tolist())) == size


ENCODINGS = sorted({*encodings.aliases.aliases.values(), "idna", "utf-8-sig"})
NO_TEXT = {"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec",
           "zlib_codec"}  # fmt: skip
READ = ("latin_1", "utf_8", "utf-8-sig", "utf_16", "utf_32", "utf_7", "cp037")


def test_every_encoding_reads_or_is_refused(tmp_path):
    """What can be written in an encoding is read in it; other bytes are read, or named."""
    path = tmp_path / "log.csv"
    for encoding in ENCODINGS:
        for text in ("user,item\nann,2\n", "user,item\nann,é\n"):
            path.write_bytes(text.encode("latin-1"))
            told = read_or_refuse(lambda name=encoding: Interactions.from_csv(path, encoding=name))
            assert not told or any(word in told for word in ("encoding", "column", "separator"))
        if encoding in NO_TEXT:
            assert "is no known text encoding" in told
        for user in ("bob", "é"):
            try:
                path.write_bytes(f"user,item\nann,7\n{user},8\n".encode(encoding))
            except (LookupError, UnicodeError):
                continue
            told = read_or_refuse(lambda name=encoding: Interactions.from_csv(path, encoding=name))
            assert not told or encoding not in READ
            if not told:
                found = Interactions.from_csv(path, encoding=encoding)
                assert found.user_ids.tolist() == ["ann", user], encoding
            if encoding == "utf-8-sig":  # a mark at the beginning needs no encoding
                assert Interactions.from_csv(path).user_ids.tolist() == ["ann", user]


TEXTS = st.text(st.sampled_from("user,item\n\r\"'1 \t;:\0\x0b\x0c\x1c\x85\u2028é"), max_size=60)


@in_one_folder
@given(st.one_of(TEXTS.map(str.encode), st.binary(max_size=60)), st.booleans(), st.booleans())
def test_any_text(tmp_path, content, named, header):
    path = tmp_path / "log.csv"
    path.write_bytes((b"user,item\n" if named else b"") + content)
    columns = {} if header else {"user": 0, "item": 1}
    read_or_refuse(lambda: Interactions.from_csv(path, header=header, **columns))


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "user,item\n1,2\n")
    return file.getvalue()


def parquet():
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"user": [1, 2] * 50, "item": ["a", "b"] * 50}), file)
    return file.getvalue()


FILES = {
    "log.parquet": parquet(),
    "log.csv.gz": gzip.compress(b"user,item\n" + b"1,2\n3,4\n" * 50),
    "log.csv.zip": zipped(),
}


@pytest.mark.parametrize("name", FILES)
@in_one_folder
@given(data=st.data())
def test_damaged_files(tmp_path, name, data):
    path, damaged = tmp_path / name, bytearray(FILES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged[: data.draw(st.integers(len(damaged) // 2, len(damaged)))])
    read = Interactions.from_parquet if name.endswith("parquet") else Interactions.from_csv
    told = read_or_refuse(lambda: read(path))
    assert not told or name in told


def test_no_byte_of_a_zip_archive_is_trusted(tmp_path):
    path, content = tmp_path / "log.csv.zip", FILES["log.csv.zip"]
    for at, flip in product(range(len(content)), (0xFF, 1)):  # the last bit of flags: encrypted
        path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
        told = read_or_refuse(lambda: Interactions.from_csv(path))
        assert "log.csv.zip" in told or Interactions.from_csv(path).user_ids.tolist() == [1]


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.dates()
VALUES |= st.datetimes() | st.decimals() | st.lists(st.integers())
VALUES |= st.text(st.characters())  # lone surrogates, too


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


BAD = {
    "indptr": st.integers(-1, 9) | st.sampled_from([2**31, -(2**40)]),
    "indices": st.integers(-1, 4) | st.sampled_from([2**31, 2**40]),
    "data": st.sampled_from([0, -1, np.nan, np.inf, 1e13, 1e12, 1e-45, 1e39]),
}


@settings(max_examples=300)
@given(
    rows=st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=4), drawn=st.data()
)
def test_any_arrays_of_a_matrix(rows, drawn):
    arrays = {
        "indptr": np.cumsum([0, *map(len, rows)]),
        "indices": np.array([column for row in rows for column in row], dtype=np.int64),
    }
    count = len(arrays["indices"])
    weights = st.lists(st.sampled_from([1.0, 1.0, 2.5]), min_size=count, max_size=count)
    arrays["data"] = np.array(drawn.draw(weights))
    name = drawn.draw(st.sampled_from([None, *arrays]))
    if name is not None and arrays[name].size:
        place = drawn.draw(st.integers(0, arrays[name].size - 1))
        arrays[name][place] = drawn.draw(BAD[name])
    before = {key: array.copy() for key, array in arrays.items()}
    matrix = raw_csr(arrays["data"], arrays["indices"], arrays["indptr"], (len(rows), 4))
    read = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        told = read_or_refuse(lambda: read.append(Interactions.from_csr(matrix)) or read[0])
    for key, array in before.items():
        np.testing.assert_array_equal(getattr(matrix, key), array)
    if told:
        return
    expected, places = np.zeros(matrix.shape), set()
    for row, (begin, end) in enumerate(pairwise(arrays["indptr"])):
        np.add.at(expected[row], arrays["indices"][begin:end], arrays["data"][begin:end])
        places |= {(row, column) for column in arrays["indices"][begin:end].tolist()}
    expected[expected < 1e-38] = 0
    [found], repeated = read, arrays["indptr"][-1] - len(places)
    np.testing.assert_allclose(found.to_csr().toarray(), expected, rtol=1e-6)
    assert (found.users.weights is None) == (set(expected.ravel()) <= {0, 1})
    messages = [str(each.message) for each in warned]
    assert len(messages) == (repeated > 0)
    assert not messages or f"holds {repeated} duplicate entries" in messages[0]
