"""Parquet and CSV files as sources of record batches."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from safecf.data.columns import Columns, Source, resolve
from safecf.data.paths import naming_damage, oneline, open_bytes

ROWS_AT_ONCE = 2**20
BYTES_AT_ONCE = 2**23
LONGEST_LINE = 2**20
CSV_TYPES = {
    "user": pa.string(),
    "item": pa.string(),
    "rating": pa.float64(),
    "weight": pa.float64(),
    "timestamp": pa.int64(),
}


def parquet_source(path: Path, columns: Columns) -> Source:
    """Return the columns of a Parquet file, which is read a part at a time."""
    name = str(path)

    def batches() -> Iterator[Any]:
        with naming_damage(name):
            try:
                with pyarrow.parquet.ParquetFile(path) as file:
                    names = file.schema_arrow.names
                    positions = resolve(columns.given, names, name)
                    wanted = list(dict.fromkeys(names[at] for at in positions.values()))
                    for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
                        arrays = [batch.column(names[at]) for at in positions.values()]
                        yield pa.RecordBatch.from_arrays(arrays, names=list(positions))
            except pa.ArrowInvalid as problem:
                raise ValueError(
                    f"{name}: it is no Parquet file, or cut off or damaged ({oneline(problem)}); "
                    "write or copy it again"
                ) from problem

    return Source(name, batches)


def csv_source(
    name: str,
    open_file: Callable[[], Any],
    columns: Columns,
    *,
    separator: str = ",",
    header: bool = True,
    encoding: str = "utf8",
) -> Source:
    """Return the columns of a text file, which is read a part at a time.

    Ids are read as strings. `separator` is one character, or the same one twice: "::".
    """
    # Between two equal separators lies an empty field, so every second column is a real one.
    step = len(separator)
    if step not in (1, 2) or len(set(separator)) != 1:
        raise ValueError(f"separator={separator!r} has to be one character, or '::'; try ','")

    def batches() -> Iterator[Any]:
        with naming_damage(name):
            labels = _first_line(name, open_file, separator, encoding)
            if labels is None:
                raise ValueError(f"{name}: the file is empty; check how it was written")
            if not header:
                labels = [str(position) for position in range(len(labels))]
            positions = resolve(columns.given, labels, name)
            raw = [f"f{position}" for position in range(step * (len(labels) - 1) + 1)]
            types = {raw[step * at]: CSV_TYPES[role] for role, at in positions.items()}
            wanted = list(types)
            with open_file() as file:
                try:
                    reader = pyarrow.csv.open_csv(
                        file,
                        pyarrow.csv.ReadOptions(
                            # One thread, because only then do errors name the line.
                            use_threads=False,
                            block_size=BYTES_AT_ONCE,
                            skip_rows=int(header),
                            column_names=raw,
                            encoding=encoding,
                        ),
                        pyarrow.csv.ParseOptions(delimiter=separator[0]),
                        pyarrow.csv.ConvertOptions(
                            include_columns=wanted,
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
                    shown = {step * at: columns.given[role] for role, at in positions.items()}
                    explained = _explained(str(problem), shown, step, encoding)
                    raise ValueError(f"{name}: {explained}") from problem

    return Source(name, batches, lambda row: f"line {row + 1 + header}")


def _first_line(
    name: str, open_file: Callable[[], Any], separator: str, encoding: str
) -> list[str] | None:
    """Return the fields of the first line, None if there is none."""
    encoding = "utf-8-sig" if encoding in ("utf8", "utf-8") else encoding
    # Decoded in blocks, so that a wrong byte further down is no error of this line.
    wrapped = io.TextIOWrapper(open_file(), encoding=encoding, errors="replace")
    with wrapped as text:
        line = text.readline(LONGEST_LINE)
    if not line:
        return None
    if "\ufffd" in line:
        raise ValueError(f"{name}: {_not_encoded(encoding, 'line 1: ')}")
    line = line.rstrip("\r\n")
    if len(separator) > 1:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator), [])


def _explained(problem: str, columns: dict[int, Any], step: int, encoding: str) -> str:
    """Say in our words what Arrow says of a text file."""
    line = re.search(r"Row #(\d+)", problem)
    where = f"line {line[1]}: " if line else ""
    lengths = re.search(r"Expected (\d+) columns, got (\d+)", problem)
    if lengths:
        expected, found = ((int(number) - 1) // step + 1 for number in lengths.groups())
        return (
            f"{where}it has {found} fields, not {expected} as the first line; is it cut off, or "
            "is another separator= meant?"
        )
    if "UTF8" in problem or "codec" in problem:
        return _not_encoded(encoding, where)
    wrong = re.search(r"CSV column #(\d+).*error to (\w+): invalid value '(.*)'", problem, re.S)
    if wrong:
        kind = "an integer" if wrong[2] == "int64" else "a number"
        column = columns.get(int(wrong[1]), int(wrong[1]))
        return (
            f"{where}column {column!r} holds {wrong[3][:50]!r}, not {kind}; correct it, or check "
            "header= and separator="
        )
    return f"{where}{problem}; check separator= and the quotes in the file"


def _not_encoded(encoding: str, where: str) -> str:
    known = "UTF-8" if encoding.lower().startswith("utf") else encoding
    return f"{where}it is not written in {known}; try encoding='latin-1', or convert it"


def text_source(path: Path, columns: Columns, **options: Any) -> Source:
    """Return the columns of a text file by path."""
    return csv_source(str(path), lambda: open_bytes(path), columns, **options)
