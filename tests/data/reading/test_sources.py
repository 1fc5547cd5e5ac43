"""Frames, Parquet files and text files with the same rows give the same interactions."""

import bz2
import csv
import decimal
import gzip
import io
import lzma
import zipfile
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf import Interactions
from safecf.data.matrices import coo
from safecf.data.reading import delimited, sources
from tests.data.rows import assert_same, entries, integers, rows_of, safe_strings, slow, strings
from tests.helpers import refused

ANY_ROWS = rows_of(integers, strings) | rows_of(strings, integers)
OPTIONS = st.fixed_dictionaries(
    {
        "weighted": st.booleans(),
        "min_rating": st.none() | st.sampled_from([2, 4]),
        "min_user": st.integers(1, 3),
        "min_item": st.integers(1, 3),
        "duplicates": st.sampled_from(["sum", "max", "first", "last"]),
    }
)


def arguments(options):
    return {
        "weight": "weight" if options["weighted"] else None,
        "rating": None if options["min_rating"] is None else "rating",
        "min_rating": options["min_rating"],
        "min_user_interactions": options["min_user"],
        "min_item_interactions": options["min_item"],
        "duplicates": options["duplicates"],
    }


def columns_of(rows):
    names = ("user", "item", "rating", "weight")
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


@given(rows=ANY_ROWS, options=OPTIONS, block=st.integers(1, 8))
def test_frames_agree_with_the_slow_twin(rows, options, block):
    expected = slow(rows, **options)
    with patch.object(coo, "ROWS_PER_BLOCK", block):
        if not expected[0]:
            with pytest.raises(ValueError, match=r"no interaction is left|no row has a rating"):
                Interactions.from_frame(columns_of(rows), **arguments(options))
            return
        assert_same(Interactions.from_frame(columns_of(rows), **arguments(options)), expected)


@settings(max_examples=40)
@given(rows=ANY_ROWS, cut=st.integers(0, 25), group=st.integers(1, 5))
def test_parquet_files_are_read_as_one_frame(tmp_path_factory, rows, cut, group):
    folder = tmp_path_factory.mktemp("log")
    (folder / "_SUCCESS").touch()
    table = pa.table(columns_of(rows))
    for name, part in (("part-0", table[:cut]), ("part-1", table[cut:])):
        pyarrow.parquet.write_table(part, folder / f"{name}.parquet", row_group_size=group)
    expected = Interactions.from_frame(table)
    files = [folder / "part-0.parquet", str(folder / "part-1.parquet")]
    with patch.object(sources, "ROWS_PER_BATCH", 2):
        for paths in (folder, f"{folder}/*.parquet", files):
            found = Interactions.from_parquet(paths)
            assert entries(found) == entries(expected)
            assert found.user_ids.tolist() == expected.user_ids.tolist()


@settings(max_examples=60)
@given(
    rows=rows_of(integers, safe_strings) | rows_of(safe_strings, integers),
    separator=st.sampled_from([",", "\t", ";", "|"]),
    header=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_text_files_round_trip(tmp_path_factory, rows, separator, header, quoting, newline):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=newline)
    names = ["user", "item", "rating", "weight"]
    writer.writerows([names, *rows] if header else rows)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_bytes(text.getvalue().encode())
    columns = names if header else range(4)
    options = dict(zip(("user", "item", "rating", "weight"), columns, strict=True))
    # Ids of digits are integers again, unless one of them has a leading zero.
    expected = slow([_as_read(rows, row) for row in rows], weighted=True)
    if not expected[0]:
        return
    assert_same(
        Interactions.from_csv(path, separator=separator, header=header, **options), expected
    )


def _is_integer(text):
    return text.lstrip("-").isdecimal() and str(int(text)) == text


def _as_read(rows, row):
    """Return a row with its ids as they are read from text."""
    ids = []
    for at in (0, 1):
        column = [str(other[at]) for other in rows]
        ids.append(int(row[at]) if all(map(_is_integer, column)) else str(row[at]))
    return (*ids, *row[2:])


def _arrow_compressed(content, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def _zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("folder/log.csv", content)
    return file.getvalue()


CONTENT = b"user,item\na,1\nb,2\na,3\n"
COMPRESSIONS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: _arrow_compressed(content, "zstd"),
    ".lz4": lambda content: _arrow_compressed(content, "lz4"),
    ".zip": _zipped,
}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_compressed_files(tmp_path, suffix):
    path = tmp_path / f"log.csv{suffix}"
    path.write_bytes(COMPRESSIONS[suffix](CONTENT))
    expected = {("a", 1): 1, ("b", 2): 1, ("a", 3): 1}
    assert entries(Interactions.from_csv(path)) == expected
    assert entries(Interactions.from_csv(tmp_path)) == expected
    if suffix == ".zip":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("README", "words")
        with refused(ValueError, "log.csv.zip: it holds 2 files ", "README", "extract the"):
            Interactions.from_csv(path)
    path.write_bytes(path.read_bytes()[:-12])
    with refused(ValueError, f"log.csv{suffix}: it is cut off or damaged ", "copy or"):
        Interactions.from_csv(path)


def test_movielens_text(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::10::5::97\n2::10::3::98\n1::20::4::99\n")
    found = Interactions.from_csv(
        tmp_path / "ratings.dat", separator="::", header=False, user=0, item=1, rating=2,
        min_rating=4,
    )  # fmt: skip
    assert entries(found) == {(1, 10): 1, (1, 20): 1}
    (tmp_path / "named.csv").write_text("who::what\n1::10\n")
    found = Interactions.from_csv(tmp_path / "named.csv", separator="::", user="who", item="what")
    assert entries(found) == {(1, 10): 1}


def test_columns_by_position_and_two_roles_for_one_column(tmp_path):
    table = pa.table({"a": [1, 2], "b": [3, 4], "stars": [1.0, 5.0]})
    found = Interactions.from_frame(
        table, user=0, item="b", rating="stars", weight="stars", min_rating=2
    )
    assert entries(found) == {(2, 4): 5.0}
    pyarrow.parquet.write_table(table, tmp_path / "log.pq")
    again = Interactions.from_parquet(tmp_path, user=0, item=1, rating=2, weight=2, min_rating=2)
    assert entries(again) == entries(found)


@pytest.mark.parametrize("block", [64, delimited.BYTES_PER_BATCH])
def test_quoted_lines_across_blocks_and_at_the_end(tmp_path, block):
    rows = [(number, f"{number}\nof many") for number in range(50)]
    lines = "".join(f'{user},"{item}"\n' for user, item in rows)
    (tmp_path / "log.csv").write_text("user,item\n" + lines)
    with patch.object(delimited, "BYTES_PER_BATCH", block):
        assert entries(Interactions.from_csv(tmp_path)) == dict.fromkeys(rows, 1)


def test_lines_are_counted_over_blocks(tmp_path):
    lines = [f"{n},{n},3\n" for n in range(200)]
    for bad, words in (
        (",1,1\n", "column 'user', line 152: there is no id"),
        ("1,1,x\n", "line 152"),
    ):
        text = "user,item,w\n" + "".join([*lines[:150], bad, *lines[150:]])
        (tmp_path / "log.csv").write_text(text)
        with patch.object(delimited, "BYTES_PER_BATCH", 64), refused(ValueError, words):
            Interactions.from_csv(tmp_path, weight="w")


def test_rows_are_counted_over_parquet_batches(tmp_path):
    table = pa.table({"user": [1] * 10 + [None], "item": list(range(11))})
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=4)
    words = "log.parquet: column 'user', row 10 (counted from 0"
    with patch.object(sources, "ROWS_PER_BATCH", 3), refused(ValueError, words):
        Interactions.from_parquet(tmp_path)


def test_decimals_are_numbers_and_the_largest_weight_may_repeat():
    frame = {"user": [1, 1], "item": [1, 2], "w": [decimal.Decimal("2.5")] * 2}
    assert Interactions.from_frame(frame, weight="w").users.weights.tolist() == [2.5, 2.5]
    frame = {"user": [1, 1], "item": [1, 1], "w": [9e11] * 2}
    found = Interactions.from_frame(frame, weight="w", duplicates="max")
    assert found.users.weights.tolist() == pytest.approx([9e11])
