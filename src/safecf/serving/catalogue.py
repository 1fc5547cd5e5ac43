"""`Catalogue`: titles and other facts about items, to show and to search."""

import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from safecf.data.reading.arrow import load_pandas
from safecf.data.reading.paths import PARQUET, one_line, open_file, strip_compression
from safecf.errors import FileFormatError, shown
from safecf.serving.requests import Id

ID_COLUMNS, TITLE = ("item", "id"), "title"
LONGEST = 1000  # characters of a text


class Catalogue:
    """Facts by item id; items without any have their id as title.

    >>> Catalogue([7, 8], [0.5, 0.1], {7: {"title": "Alien"}}).search("ali", 5)
    [7]
    """

    def __init__(
        self,
        ids: Sequence[Id],
        popularity: NDArray[np.float32],
        facts: dict[Id, dict[str, Any]] | None = None,
    ) -> None:
        load_pandas()
        self.facts = facts or {}
        self._ids, self._popularity = ids, popularity
        titles = [folded(self.facts.get(each, {}).get(TITLE) or str(each)) for each in ids]
        self._titles = pa.array(titles, pa.large_string())
        self._names = pa.array([folded(str(each)) for each in ids], pa.large_string())

    @property
    def has_titles(self) -> bool:
        """Whether a file of items was given."""
        return bool(self.facts)

    def describe(self, item: Id) -> dict[str, Any]:
        """Return an item's id and the facts about it."""
        return {"id": item} | self.facts.get(item, {}) | {"id": item}

    def search(self, text: str, count: int) -> list[Id]:
        """Return items whose titles have all words of a text, or whose id it is.

        First come those whose whole title or id it is, then those that begin with it, then those
        with a word that does; within each, the most popular ones. Upper case and accents do not
        count.
        """
        wanted = folded(text)
        whole = _mask(pc.equal(self._titles, wanted)) | _mask(pc.equal(self._names, wanted))
        found = np.ones(len(self._ids), dtype=bool)
        for word in wanted.split():
            found &= _mask(pc.match_substring(self._titles, word))
        begins = _mask(pc.starts_with(self._titles, wanted))
        inside = _mask(pc.match_substring(self._titles, f" {wanted}"))
        places = np.flatnonzero(found | whole)
        group = np.select([whole, begins, inside], [0, 1, 2], 3)[places]
        order = np.lexsort((-self._popularity[places], group))
        return [self._ids[place] for place in places[order[:count]].tolist()]


def _mask(found: Any) -> NDArray[np.bool_]:
    """Return truth values of Arrow as an array."""
    values: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return values


def folded(text: str) -> str:
    """Return a text without accents, in lower case.

    >>> folded("Amélie")
    'amelie'
    """
    split = unicodedata.normalize("NFKD", text)
    return "".join(each for each in split if not unicodedata.combining(each)).casefold().strip()


def read_facts(path: Path, known: Sequence[Id]) -> dict[Id, dict[str, Any]]:
    """Read the facts about the known items from a Parquet, CSV or TSV file."""
    table = _read_table(path, text_ids=isinstance(known[0], str) if known else True)
    column = next((name for name in ID_COLUMNS if name in table.column_names), None)
    if column is None or TITLE not in table.column_names:
        raise FileFormatError(
            f"{path}: its columns are {', '.join(table.column_names[:20])}; there have to be "
            "item (or id) and title"
        )
    columns = {name: _plain(table[name]) for name in table.column_names}
    columns[TITLE] = _titles(columns[TITLE], f"{path}: the column {TITLE}")
    ids = columns.pop(column)
    if not (_is_text(ids.type) or pa.types.is_integer(ids.type)):
        raise FileFormatError(
            f"{path}: the column {column} holds {ids.type}, not ids; cast it to integers or strings"
        )
    names, served = ids.to_pylist(), set(known)
    kept = {name: each for name, each in columns.items() if _shown(each.type)}
    rows = pa.table(kept).to_pylist()
    facts = {
        name: {key: _value(value) for key, value in row.items() if value is not None}
        for name, row in zip(names, rows, strict=True)
        if name in served
    }
    if not facts:
        raise FileFormatError(
            f"{path}: none of its items is known to the model, such as {shown(names[0])}, where "
            f"{shown(known[0])} is; give the ids of the training data"
            if names
            else f"{path}: it has no rows; give one per item"
        )
    return facts


def _read_table(path: Path, text_ids: bool) -> Any:
    """Read a table; ids of text files are read as the model's are."""
    name = strip_compression(path.name).lower()
    try:
        if name.endswith(PARQUET):
            return pa.parquet.read_table(path)
        ids = pa.large_string() if text_ids else pa.int64()
        convert = pa.csv.ConvertOptions(
            column_types={**dict.fromkeys(ID_COLUMNS, ids), TITLE: pa.large_string()}
        )
        parse = pa.csv.ParseOptions(delimiter="\t" if name.endswith(".tsv") else ",")
        with open_file(path) as file:
            return pa.csv.read_csv(file, parse_options=parse, convert_options=convert)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: there is no such file; give a Parquet, CSV or TSV file of items"
        ) from None
    except (pa.ArrowException, OSError, ValueError) as problem:
        remedy = "give a Parquet, CSV or TSV file of items"
        if "UTF8" in str(problem) or "UTF-8" in str(problem):
            remedy = f"convert it, as in iconv -f latin1 -t utf8 {path}"
        raise FileFormatError(f"{path}: {one_line(problem)}; {remedy}") from None


def _plain(column: Any) -> Any:
    """Decode a column of a dictionary, as categories of pandas are."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _titles(column: Any, where: str) -> Any:
    """Return titles as texts, null if blank; numbers, dates and truth values become texts."""
    if not (_is_text(column.type) or pa.types.is_primitive(column.type)):
        raise FileFormatError(f"{where} holds {column.type}, not texts; cast it to strings")
    texts = column.cast(pa.large_string())
    blank = pc.equal(pc.utf8_trim_whitespace(texts), "")
    return pc.if_else(blank, pa.scalar(None, pa.large_string()), texts)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _shown(kind: Any) -> bool:
    """Whether a column has texts, numbers, or lists of them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _value(value: Any) -> Any:
    """Return a value for JSON: no NaN, and no text without end."""
    if isinstance(value, list):
        return [_value(each) for each in value[:100]]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value[:LONGEST] if isinstance(value, str) else value
