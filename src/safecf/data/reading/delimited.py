"""Delimited text (CSV, TSV, "::") as a `Source`; errors name the line of the file."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv

from safecf.data.reading.layout import Layout, Source, find_columns, name_by_role
from safecf.data.reading.paths import name_damaged_file

BYTES_PER_BATCH = 2**23
LONGEST_LINE = 2**20
NUMERIC = ("rating", "weight")

# The first bytes of files that are not text, and what to try.
SIGNATURES = {
    b"PAR1": "it is a Parquet file; try from_parquet, or give it the suffix .parquet",
    b"PK\x03\x04": "it is a zip archive; give it the suffix .zip, or extract it",
    b"\x1f\x8b": "it is compressed by gzip; give it the suffix .gz",
    b"BZh": "it is compressed by bzip2; give it the suffix .bz2",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd; give it the suffix .zst",
    b"\xfd7zXZ": "it is compressed by xz; give it the suffix .xz",
}
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def delimited_source(name: str, open_file: Callable[[], Any], layout: Layout) -> Source:
    """Read delimited text batch by batch; `open_file` opens its bytes. Ids are read as strings."""
    separator = layout.separator
    if len(separator) not in (1, 2) or len(set(separator)) != 1:
        raise ValueError(f"separator={separator!r} has to be one character, or '::'; try ','")
    text = _Text(name, open_file, layout, _normalize(layout.encoding))
    return Source(name, text.batches, text.line_of)


def _normalize(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(
            f"encoding={encoding!r} is not known; try 'utf8', 'latin-1' or 'utf-16'"
        ) from None


@dataclass(frozen=True)
class _Text:
    name: str
    open_file: Callable[[], Any]
    layout: Layout
    encoding: str

    @property
    def delimiter(self) -> str:
        return self.layout.separator[0]

    @property
    def stride(self) -> int:
        """1, or 2 for "::": pyarrow splits at every ":", so every second field is empty."""
        return len(self.layout.separator)

    @property
    def header_lines(self) -> int:
        return int(self.layout.header)

    def batches(self) -> Iterator[Any]:
        with name_damaged_file(self.name):
            first = self._first_line()
            names = first if self.layout.header else [str(at) for at in range(len(first))]
            positions = find_columns(self.layout.columns, names, self.name)
            raw = [f"f{at}" for at in range(self.stride * (len(names) - 1) + 1)]
            selected = {role: raw[self.stride * at] for role, at in positions.items()}
            # A column with two roles is read as numbers, if one of them is numeric.
            types = {column: pa.string() for column in selected.values()}
            types |= {selected[role]: pa.float64() for role in NUMERIC if role in selected}
            with self.open_file() as file:
                try:
                    for batch in self._open_csv(file, raw, types):
                        yield name_by_role(batch, selected)
                except pa.ArrowInvalid as problem:
                    if "Empty CSV file" in str(problem):
                        return
                    raise ValueError(self._translate(str(problem), positions)) from problem

    def _open_csv(self, file: Any, names: list[str], types: dict[str, Any]) -> Any:
        return pyarrow.csv.open_csv(
            file,
            pyarrow.csv.ReadOptions(
                use_threads=False,  # with more threads, errors do not name the row
                block_size=BYTES_PER_BATCH,
                skip_rows=self.header_lines,
                column_names=names,
                encoding=self.encoding,
            ),
            pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def _decoded(self) -> io.TextIOWrapper:
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        # The decoder reads ahead: a wrong byte further down must not fail the lines before it.
        return io.TextIOWrapper(self.open_file(), encoding=encoding, errors="replace", newline="")

    def _first_line(self) -> list[str]:
        """Return the fields of the first line; raise if the file is empty or not text."""
        with self.open_file() as file:
            begin = file.read(8)
        for signature, remedy in SIGNATURES.items():
            if begin.startswith(signature):
                raise ValueError(f"{self.name}: {remedy}")
        if begin.startswith(UTF_16) and not self.encoding.startswith("utf-16"):
            raise ValueError(f"{self.name}: it is written in UTF-16; try encoding='utf-16'")
        with self._decoded() as text:
            line = text.readline(LONGEST_LINE)
        if not line:
            raise ValueError(f"{self.name}: the file is empty; check how it was written")
        if "\ufffd" in line:
            raise ValueError(f"{self.name}: line 1: {self._wrong_encoding()}")
        line = line.rstrip("\r\n")
        if self.stride > 1:
            return line.split(self.layout.separator)
        return next(csv.reader([line], delimiter=self.delimiter), [])

    def line_of(self, row: int) -> str:
        """Name the line where a row (counted from 0) begins; reads the file again, up to there."""
        record, begin, seen = row + self.header_lines, 1, -1
        with self._decoded() as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            try:
                for fields in reader:
                    seen += bool(fields)  # empty lines are no records
                    if seen == record:
                        return f"line {begin}"
                    begin = reader.line_num + 1
            except csv.Error:
                pass
        return f"row {record + 1}"

    def _translate(self, problem: str, positions: dict[str, int]) -> str:
        """Translate pyarrow's CSV errors."""
        record = re.search(r"Row #(\d+)", problem)
        line = f"{self.line_of(int(record[1]) - 1 - self.header_lines)}: " if record else ""
        return f"{self.name}: {line}{self._explain(problem, positions)}"

    def _explain(self, problem: str, positions: dict[str, int]) -> str:
        lengths = re.search(r"Expected (\d+) columns, got (\d+)", problem)
        if lengths:
            expected, found = ((int(count) - 1) // self.stride + 1 for count in lengths.groups())
            return (
                f"it has {found} fields, not {expected} as the first line; is it cut off, or "
                "is another separator= meant?"
            )
        if "UTF8" in problem or "codec" in problem:
            return self._wrong_encoding()
        wrong = re.search(r"CSV column #(\d+).*error to (\w+): invalid value '(.*)'", problem, re.S)
        if wrong:
            roles = {self.stride * at: role for role, at in positions.items()}
            at = int(wrong[1])
            column = self.layout.columns[roles[at]] if at in roles else at
            return (
                f"column {column!r} holds {wrong[3][:50]!r}, not a number; correct it, or check "
                "header= and separator="
            )
        return f"{problem}; check separator= and the quotes in the file"

    def _wrong_encoding(self) -> str:
        known = "UTF-8" if self.encoding.startswith("utf-8") else self.encoding
        return f"it is not written in {known}; try encoding='latin-1', or convert it"
