"""Frames, Parquet files and text files as `Source`; neither pandas nor polars is imported."""

from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from safecf.data.reading.arrow import load_pandas
from safecf.data.reading.delimited import delimited_source
from safecf.data.reading.layout import Layout, Source, find_columns, name_by_role
from safecf.data.reading.paths import PARQUET, name_damaged_file, one_line, open_file
from safecf.errors import shown
from safecf.texts import SURROGATE

FRAME = "frame"  # its name in error messages
ROWS_PER_BATCH = 2**20


def frame_source(frame: Any, layout: Layout) -> Source:
    """Read a pandas frame, a mapping of columns, or anything with the Arrow PyCapsule interface."""
    load_pandas()
    labels = _labels(frame)
    positions = find_columns(layout.columns, [str(label) for label in labels], FRAME)
    # Only the columns that are needed: the others may be of types that Arrow does not know.
    wanted = list(dict.fromkeys(positions.values()))
    if isinstance(frame, Mapping):
        stream = _table(labels, wanted, lambda at: frame[labels[at]])
    elif _is_pandas(frame):
        stream = _table(labels, wanted, lambda at: frame.iloc[:, at])
    elif isinstance(frame, pa.Table | pa.RecordBatch):
        stream = frame.select(wanted)
    elif hasattr(frame, "select"):
        stream = frame.select([labels[at] for at in wanted])
    else:
        stream, wanted = frame, list(range(len(labels)))
    selected = {role: wanted.index(at) for role, at in positions.items()}

    def batches() -> Iterator[Any]:
        try:
            for batch in pa.RecordBatchReader.from_stream(stream):
                yield name_by_role(batch, selected)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as problem:
            raise TypeError(f"{FRAME}: {one_line(problem)}; try pyarrow.table(...)") from problem

    return Source(FRAME, batches)


def file_source(path: Path, layout: Layout) -> Source:
    """Read a Parquet file or a text file, which its suffix tells."""
    if path.name.lower().endswith(PARQUET):
        return parquet_source(path, layout)
    return text_source(path, layout)


def text_source(path: Path, layout: Layout) -> Source:
    """Read a text file, which may be compressed."""
    return delimited_source(str(path), lambda: open_file(path), layout)


def parquet_source(path: Path, layout: Layout) -> Source:
    """Read a Parquet file, batch by batch."""
    name = str(path)

    def batches() -> Iterator[Any]:
        with name_damaged_file(name):
            try:
                with pyarrow.parquet.ParquetFile(path) as file:
                    names = file.schema_arrow.names
                    selected = find_columns(layout.columns, names, name)
                    wanted = list(dict.fromkeys(names[at] for at in selected.values()))
                    if len(set(names)) < len(names):
                        # pyarrow selects columns by name, so that duplicate names need all columns
                        wanted = names
                    else:
                        selected = {role: wanted.index(names[at]) for role, at in selected.items()}
                    for batch in file.iter_batches(ROWS_PER_BATCH, columns=wanted):
                        yield name_by_role(batch, selected)
            except (pa.ArrowException, UnicodeError) as problem:
                if isinstance(problem, OSError | MemoryError | pa.ArrowCancelled):
                    raise
                raise ValueError(_damaged(name, problem)) from problem

    return Source(name, batches)


def _damaged(name: str, problem: Exception) -> str:
    told = one_line(problem)
    if "magic bytes" in told or "file size is" in told:
        return f"{name}: it is no Parquet file, or cut off; write or copy it again"
    return f"{name}: it is damaged, or of a kind that is not supported ({told}); write it again"


def is_frame(value: object) -> bool:
    """Whether a value is meant for `from_frame`, which tells what to do about lazy frames."""
    arrow = hasattr(value, "__arrow_c_stream__") and hasattr(value, "schema")
    return arrow or isinstance(value, Mapping) or _is_pandas(value) or hasattr(value, "collect")


def _is_pandas(frame: object) -> bool:
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def _labels(frame: Any) -> list[Any]:
    """Return the labels of the columns, which pandas allows to be of any type."""
    if isinstance(frame, Mapping):
        return list(frame)
    if _is_pandas(frame):
        return list(frame.columns)
    if not hasattr(frame, "__arrow_c_stream__") or not hasattr(frame, "schema"):
        hint = "call .collect() first" if hasattr(frame, "collect") else "try pyarrow.table(...)"
        raise TypeError(
            f"frame is of type {type(frame).__name__}, not a DataFrame of pandas or polars nor an "
            f"Arrow table; {hint}"
        )
    schema = frame.schema
    return list(schema.names() if callable(schema.names) else schema.names)


def _table(labels: list[Any], wanted: list[int], column: Callable[[int], Any]) -> Any:
    """Convert the wanted columns to an Arrow table, in this order."""
    arrays = []
    for at in wanted:
        values = column(at)
        if isinstance(values, str | bytes | Set | Mapping):
            raise TypeError(
                f"{FRAME}: column {shown(labels[at])} is a {type(values).__name__}; give an array "
                "or a list with one value per row"
            )
        try:
            known = isinstance(values, pa.Array | pa.ChunkedArray)
            arrays.append(values if known else pa.array(values, from_pandas=True))
        except UnicodeError as problem:
            wrong = next(text for text in map(str, values) if SURROGATE.search(text))
            raise ValueError(
                f"{FRAME}: column {shown(labels[at])} holds {shown(wrong)}, which is no "
                "valid text; replace the surrogates, as in text.encode(errors='replace').decode()"
            ) from problem
        except (OverflowError, TypeError, pa.ArrowException) as problem:
            reason = one_line("; ".join(str(part) for part in problem.args))
            raise TypeError(
                f"{FRAME}: column {shown(labels[at])}: {reason}; cast it to numbers or to strings"
            ) from problem
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise ValueError(
            f"{FRAME}: its columns have {' and '.join(map(str, sorted(lengths)))} rows; give all "
            "of them one value per row"
        )
    return pa.Table.from_arrays(arrays, names=[str(at) for at in wanted])
