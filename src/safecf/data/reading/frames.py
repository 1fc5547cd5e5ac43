"""Frames of pandas, polars and Arrow as a source of record batches; none of them is imported."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from safecf.data.reading.columns import Layout, Source, resolve

NAME = "frame"


def frame_source(frame: Any, layout: Layout) -> Source:
    """Return the columns of a frame: pandas, or whatever speaks the Arrow PyCapsule interface."""
    labels = _labels(frame)
    positions = resolve(layout.given, [str(label) for label in labels], NAME)
    # Other columns stay behind: they may be of types that Arrow does not know.
    wanted = list(dict.fromkeys(positions.values()))
    if isinstance(frame, Mapping):
        stream = _table(labels, wanted, lambda at: frame[labels[at]])
    elif hasattr(frame, "iloc"):
        stream = _table(labels, wanted, lambda at: frame.iloc[:, at])
    elif isinstance(frame, pa.Table | pa.RecordBatch):
        stream = frame.select(wanted)
    elif hasattr(frame, "select"):
        stream = frame.select([labels[at] for at in wanted])
    else:
        stream, wanted = frame, list(range(len(labels)))
    places = [wanted.index(at) for at in positions.values()]

    def batches() -> Iterator[Any]:
        for batch in pa.RecordBatchReader.from_stream(stream):
            arrays = [batch.column(at) for at in places]
            yield pa.RecordBatch.from_arrays(arrays, names=list(positions))

    return Source(NAME, batches)


def _labels(frame: Any) -> list[Any]:
    """Return the names of the columns, which pandas allows to be anything."""
    if isinstance(frame, Mapping):
        return list(frame)
    if hasattr(frame, "iloc"):
        return list(frame.columns)
    if not hasattr(frame, "__arrow_c_stream__"):
        hint = "call .collect() first" if hasattr(frame, "collect") else "try pyarrow.table(...)"
        raise TypeError(
            f"frame is of type {type(frame).__name__}, not a DataFrame of pandas or polars nor an "
            f"Arrow table; {hint}"
        )
    schema = frame.schema
    return list(schema.names() if callable(schema.names) else schema.names)


def _table(labels: list[Any], wanted: list[int], column: Callable[[int], Any]) -> Any:
    """Return columns as an Arrow table, in the order in which they are wanted."""
    arrays = []
    for at in wanted:
        values = column(at)
        try:
            known = isinstance(values, pa.Array | pa.ChunkedArray)
            arrays.append(values if known else pa.array(values, from_pandas=True))
        except (OverflowError, TypeError, pa.ArrowException) as problem:
            reason = "; ".join(str(part) for part in problem.args)
            raise TypeError(
                f"{NAME}: column {labels[at]!r}: {reason}; cast it to int64 or to strings"
            ) from problem
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise ValueError(
            f"{NAME}: its columns have {' and '.join(map(str, sorted(lengths)))} rows; give all of "
            "them one value per row"
        )
    return pa.Table.from_arrays(arrays, names=[str(at) for at in wanted])
