"""Frames of pandas, polars and Arrow as a source of record batches; none of them is imported."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from safecf.data.columns import Columns, Source, resolve

NAME = "frame"


def frame_source(frame: Any, columns: Columns) -> Source:
    """Return the columns of a frame: pandas, or whatever speaks the Arrow PyCapsule interface."""
    if isinstance(frame, Mapping):
        frame = pa.table(dict(frame))
    labels = _labels(frame)
    positions = resolve(columns.given, [str(label) for label in labels], NAME)
    wanted = list(dict.fromkeys(labels[position] for position in positions.values()))
    # Other columns stay behind: they may be of types that Arrow does not know.
    if hasattr(frame, "iloc"):
        try:
            stream = pa.Table.from_pandas(frame[wanted], preserve_index=False)
        except pa.ArrowException as problem:
            raise TypeError(
                f"{NAME}: {'; '.join(str(part) for part in problem.args)}; cast the column to "
                "int64 or to strings"
            ) from problem
    else:
        stream = frame.select(wanted) if hasattr(frame, "select") else frame

    def batches() -> Iterator[Any]:
        for batch in pa.RecordBatchReader.from_stream(stream):
            arrays = [batch.column(str(labels[position])) for position in positions.values()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(positions))

    return Source(NAME, batches)


def _labels(frame: Any) -> list[Any]:
    """Return the names of the columns, which pandas allows to be anything."""
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
