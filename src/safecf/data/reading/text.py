"""Text files as sources of record batches, and what is wrong with them, by line."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv

from safecf.data.reading.columns import Layout, Source, resolve
from safecf.data.reading.paths import naming_damage

BYTES_AT_ONCE = 2**23
LONGEST_LINE = 2**20
NUMBERS = ("rating", "weight")

# The first bytes of what is no text, and what to try.
FOREIGN = {
    b"PAR1": "it is a Parquet file; try from_parquet, or give it the suffix .parquet",
    b"PK\x03\x04": "it is a zip archive; give it the suffix .zip, or extract it",
    b"\x1f\x8b": "it is compressed by gzip; give it the suffix .gz",
    b"BZh": "it is compressed by bzip2; give it the suffix .bz2",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd; give it the suffix .zst",
    b"\xfd7zXZ": "it is compressed by xz; give it the suffix .xz",
}
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_source(name: str, open_file: Callable[[], Any], layout: Layout) -> Source:
    """Return the columns of a text file, which is read a part at a time; ids are strings."""
    # Between two equal separators lies an empty field, so every second column is a real one.
    separator, step = layout.separator, len(layout.separator)
    if step not in (1, 2) or len(set(separator)) != 1:
        raise ValueError(f"separator={separator!r} has to be one character, or '::'; try ','")
    encoding = _known(layout.encoding)
    skipped = int(layout.header)

    def place(row: int) -> str:
        return _line(open_file, encoding, separator[0], row + skipped)

    def batches() -> Iterator[Any]:
        with naming_damage(name):
            labels = _first_line(name, open_file, separator, encoding)
            if labels is None:
                raise ValueError(f"{name}: the file is empty; check how it was written")
            if not layout.header:
                labels = [str(position) for position in range(len(labels))]
            positions = resolve(layout.given, labels, name)
            raw = [f"f{position}" for position in range(step * (len(labels) - 1) + 1)]
            types = {
                raw[step * at]: pa.float64() if role in NUMBERS else pa.string()
                for role, at in sorted(positions.items(), key=lambda item: item[0] in NUMBERS)
            }
            with open_file() as file:
                try:
                    reader = pyarrow.csv.open_csv(
                        file,
                        pyarrow.csv.ReadOptions(
                            # One thread, because only then do errors name the row.
                            use_threads=False,
                            block_size=BYTES_AT_ONCE,
                            skip_rows=skipped,
                            column_names=raw,
                            encoding=encoding,
                        ),
                        pyarrow.csv.ParseOptions(delimiter=separator[0], newlines_in_values=True),
                        pyarrow.csv.ConvertOptions(
                            include_columns=list(types),
                            column_types=types,
                            null_values=[""],
                            strings_can_be_null=True,
                        ),
                    )
                    for batch in reader:
                        arrays = [batch.column(raw[step * at]) for at in positions.values()]
                        yield pa.RecordBatch.from_arrays(arrays, names=list(positions))
                except pa.ArrowInvalid as problem:
                    if "Empty CSV file" in str(problem):
                        return
                    shown = {step * at: layout.given[role] for role, at in positions.items()}
                    record = re.search(r"Row #(\d+)", str(problem))
                    where = f"{place(int(record[1]) - 1 - skipped)}: " if record else ""
                    explained = _explained(str(problem), shown, step, encoding)
                    raise ValueError(f"{name}: {where}{explained}") from problem

    return Source(name, batches, place)


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(
            f"encoding={encoding!r} is not known; try 'utf8', 'latin-1' or 'utf-16'"
        ) from None


def _opened(open_file: Callable[[], Any], encoding: str) -> io.TextIOWrapper:
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    # Decoded in blocks, so that a wrong byte further down is no error of the lines before.
    return io.TextIOWrapper(open_file(), encoding=encoding, errors="replace", newline="")


def _line(open_file: Callable[[], Any], encoding: str, separator: str, record: int) -> str:
    """Name the line where a record begins, counted from 0; empty lines are none.

    It is the slow way, which only an error takes.
    """
    begin, seen = 1, -1
    with _opened(open_file, encoding) as text:
        reader = csv.reader(text, delimiter=separator)
        try:
            for fields in reader:
                seen += bool(fields)
                if seen == record:
                    return f"line {begin}"
                begin = reader.line_num + 1
        except csv.Error:
            pass
    return f"row {record + 1}"


def _first_line(
    name: str, open_file: Callable[[], Any], separator: str, encoding: str
) -> list[str] | None:
    """Return the fields of the first line, None if there is none."""
    with open_file() as file:
        begin = file.read(8)
    for bytes_of_it, explained in FOREIGN.items():
        if begin.startswith(bytes_of_it):
            raise ValueError(f"{name}: {explained}")
    if begin.startswith(UTF_16) and not encoding.startswith("utf-16"):
        raise ValueError(f"{name}: it is written in UTF-16; try encoding='utf-16'")
    with _opened(open_file, encoding) as text:
        line = text.readline(LONGEST_LINE)
    if not line:
        return None
    if "\ufffd" in line:
        raise ValueError(f"{name}: line 1: {_not_encoded(encoding)}")
    line = line.rstrip("\r\n")
    if len(separator) > 1:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator), [])


def _explained(problem: str, columns: dict[int, Any], step: int, encoding: str) -> str:
    """Say in our words what Arrow says of a text file."""
    lengths = re.search(r"Expected (\d+) columns, got (\d+)", problem)
    if lengths:
        expected, found = ((int(number) - 1) // step + 1 for number in lengths.groups())
        return (
            f"it has {found} fields, not {expected} as the first line; is it cut off, or "
            "is another separator= meant?"
        )
    if "UTF8" in problem or "codec" in problem:
        return _not_encoded(encoding)
    wrong = re.search(r"CSV column #(\d+).*error to (\w+): invalid value '(.*)'", problem, re.S)
    if wrong:
        column = columns.get(int(wrong[1]), int(wrong[1]))
        return (
            f"column {column!r} holds {wrong[3][:50]!r}, not a number; correct it, or check "
            "header= and separator="
        )
    return f"{problem}; check separator= and the quotes in the file"


def _not_encoded(encoding: str) -> str:
    known = "UTF-8" if encoding.startswith("utf-8") else encoding
    return f"it is not written in {known}; try encoding='latin-1', or convert it"
