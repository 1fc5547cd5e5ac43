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

from safecf.data.reading.layout import ColumnError, Layout, Source, find_columns, name_by_role
from safecf.data.reading.paths import name_damaged_file, one_line
from safecf.errors import shown

BYTES_PER_BATCH = 2**23
LONGEST_LINE = 2**20
SEPARATORS = (",", ";", "\t", "|", "::")
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
    separator: Any = layout.separator
    if not isinstance(separator, str) or not _is_separator(separator):
        raise ValueError(
            f"separator={shown(separator)} has to be one ASCII character, but no quote or line "
            "break, or '::'; try ','"
        )
    text = _Text(name, open_file, layout, _normalize(layout.encoding))
    return Source(name, text.batches, text.line_of, is_text=True)


def _is_separator(text: str) -> bool:
    same = len(text) in (1, 2) and len(set(text)) == 1
    return same and text.isascii() and text[0] not in '"\r\n\0'


def _normalize(encoding: str) -> str:
    """Return the name of a text encoding; raise if it is unknown, or no text encoding (rot13)."""
    try:
        b"ab".decode(encoding, "replace")
        return codecs.lookup(encoding).name
    except (LookupError, ValueError, TypeError):
        raise ValueError(
            f"encoding={shown(encoding)} is no known text encoding; try 'utf8', 'latin-1' or "
            "'utf-16'"
        ) from None


def _has_line_break(column: Any) -> bool:
    """Whether the last value of a column is a text of several lines."""
    value = column[-1].as_py()
    return isinstance(value, str) and ("\n" in value or "\r" in value)


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
            line = self._first_line()
            first = self._fields(line)
            names = first if self.layout.header else [str(at) for at in range(len(first))]
            try:
                positions = find_columns(self.layout.columns, names, self.name)
            except ColumnError:
                self._suggest_separator(line)
                raise
            raw = [f"f{at}" for at in range(self.stride * (len(names) - 1) + 1)]
            selected = {role: raw[self.stride * at] for role, at in positions.items()}
            # A column with two roles is read as numbers, if one of them is numeric.
            types = {column: pa.string() for column in selected.values()}
            types |= {selected[role]: pa.float64() for role in NUMERIC if role in selected}
            last = None
            with self.open_file() as file:
                try:
                    for batch in self._open_csv(file, raw, types):
                        last = batch if batch.num_rows else last
                        yield name_by_role(batch, selected)
                except (pa.ArrowInvalid, UnicodeError) as problem:
                    # a file that holds the header alone, with or without a line break
                    if re.search("Empty CSV file|Could not skip initial", str(problem)):
                        return
                    raise ValueError(self._translate(problem, positions)) from problem
            if last is not None and any(map(_has_line_break, last.columns)):
                self._check_end()

    def _check_end(self) -> None:
        """Raise if the file ends within quotes, which makes all lines from there on one field."""
        begin = 1
        with self._decoded() as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=True)
            try:
                for _ in reader:
                    begin = reader.line_num + 1
            except csv.Error as problem:
                if re.search("end of data|field limit", str(problem)):
                    raise ValueError(
                        f"{self.name}: line {begin}: a quote is opened and not closed, so that all "
                        "lines from there on are one field; close or remove it"
                    ) from None

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

    def _first_line(self) -> str:
        """Return the first line; raise if the file is empty or not text."""
        with self.open_file() as file:
            begin = file.read(8)
        for signature, remedy in SIGNATURES.items():
            if begin.startswith(signature):
                raise ValueError(f"{self.name}: {remedy}")
        if begin.startswith(UTF_16) and not self.encoding.startswith(("utf-16", "utf-32")):
            raise ValueError(f"{self.name}: it is written in UTF-16; try encoding='utf-16'")
        try:
            with self._decoded() as text:
                line = text.readline(LONGEST_LINE)
        except UnicodeError:  # UTF-16 and UTF-32 without the mark at the beginning
            raise ValueError(f"{self.name}: {self._wrong_encoding()}") from None
        if not line:
            raise ValueError(f"{self.name}: the file is empty; check how it was written")
        if "\ufffd" in line:
            raise ValueError(f"{self.name}: line 1: {self._wrong_encoding()}")
        if not line.strip("\r\n"):
            raise ValueError(
                f"{self.name}: line 1 is empty; remove the empty lines at the beginning"
            )
        if len(line) == LONGEST_LINE:
            raise ValueError(
                f"{self.name}: line 1 has {LONGEST_LINE:,} characters or more; is this a text file "
                "with one interaction per line?"
            )
        return line.rstrip("\r\n")

    def _fields(self, line: str) -> list[str]:
        """Return the fields of the first line."""
        if self.stride > 1:
            return line.split(self.layout.separator)
        try:
            return next(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error as problem:
            if "end of data" in str(problem):
                raise ValueError(
                    f"{self.name}: line 1 ends within quotes; close the quote, or remove the line "
                    "break from the name of the column"
                ) from None
            if "field limit" in str(problem):
                raise ValueError(
                    f"{self.name}: line 1 has a field of more than {csv.field_size_limit():,} "
                    "characters; is this a text file, and is another separator= meant?"
                ) from None
            return next(csv.reader([line], delimiter=self.delimiter))

    def _suggest_separator(self, line: str) -> None:
        """Raise if the first line has more of another separator than of the given one.

        Spaces, which are also in names of columns, count only if there is no other one.
        """
        count = {each: line.count(each) for each in (*SEPARATORS, self.layout.separator)}
        if not any(count.values()):
            count[" "] = line.count(" ")
        likely = max(count, key=lambda each: (count[each], len(each)))
        if count[likely] > count[self.layout.separator]:
            raise ColumnError(
                f"{self.name}: line 1, {shown(line)}, is not separated by "
                f"{self.layout.separator!r}; try separator={likely!r}"
            ) from None

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

    def _translate(self, problem: Exception, positions: dict[str, int]) -> str:
        """Translate pyarrow's CSV errors."""
        if isinstance(problem, UnicodeError):
            return f"{self.name}: {self._undecodable_line()}{self._wrong_encoding()}"
        text = str(problem)
        record = re.search(r"Row #(\d+)", text)
        line = f"{self.line_of(int(record[1]) - 1 - self.header_lines)}: " if record else ""
        return f"{self.name}: {line}{self._explain(text, positions)}"

    def _undecodable_line(self) -> str:
        """Name the first line with bytes that the encoding does not have."""
        with self._decoded() as text:
            for number, line in enumerate(text, 1):
                if "\ufffd" in line:
                    return f"line {number}: "
        return ""

    def _explain(self, problem: str, positions: dict[str, int]) -> str:
        lengths = re.search(r"Expected (\d+) columns, got (\d+)", problem)
        if lengths:
            expected, found = ((int(count) - 1) // self.stride + 1 for count in lengths.groups())
            fields = "1 field" if found == 1 else f"{found} fields"
            return (
                f"it has {fields}, not {expected} as the first line; is it cut off, or "
                "is another separator= meant?"
            )
        if "UTF8" in problem or "codec" in problem:
            return self._wrong_encoding()
        if "straddling" in problem:
            return (
                f"a line, or a text in quotes, is longer than {BYTES_PER_BATCH >> 20} MiB; is a "
                "quote not closed, or is it another kind of file?"
            )
        wrong = re.search(r"CSV column #(\d+).*error to (\w+): invalid value '(.*)'", problem, re.S)
        if wrong:
            roles = {self.stride * at: role for role, at in positions.items()}
            at = int(wrong[1])
            column = self.layout.columns[roles[at]] if at in roles else at
            return (
                f"column {column!r} holds {shown(wrong[3])}, not a number; correct it, or check "
                "header= and separator="
            )
        return f"{one_line(problem)}; check separator= and the quotes in the file"

    def _wrong_encoding(self) -> str:
        known = "UTF-8" if self.encoding.startswith("utf-8") else self.encoding
        other = "latin-1" if known == "UTF-8" else "utf8"
        return f"it is not written in {known}; try encoding={other!r}, or convert it"
