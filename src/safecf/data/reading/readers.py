"""Files as sources of record batches, by path; what is special to text is in `text`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from safecf.data.reading.columns import Layout, Source, resolve
from safecf.data.reading.paths import PARQUET, naming_damage, oneline, open_bytes
from safecf.data.reading.text import text_source

ROWS_AT_ONCE = 2**20


def file_source(path: Path, layout: Layout) -> Source:
    """Return the columns of a Parquet or text file, as its name says."""
    if path.name.lower().endswith(PARQUET):
        return parquet_source(path, layout)
    return text_file_source(path, layout)


def text_file_source(path: Path, layout: Layout) -> Source:
    """Return the columns of a text file, which may be compressed."""
    return text_source(str(path), lambda: open_bytes(path), layout)


def parquet_source(path: Path, layout: Layout) -> Source:
    """Return the columns of a Parquet file, which is read a part at a time."""
    name = str(path)

    def batches() -> Iterator[Any]:
        with naming_damage(name):
            try:
                with pyarrow.parquet.ParquetFile(path) as file:
                    names = file.schema_arrow.names
                    positions = resolve(layout.given, names, name)
                    wanted = list(dict.fromkeys(names[at] for at in positions.values()))
                    if len(set(names)) < len(names):
                        # Columns are chosen by name; where one is there twice, all are read.
                        wanted = names
                    else:
                        positions = {
                            role: wanted.index(names[at]) for role, at in positions.items()
                        }
                    for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
                        arrays = [batch.column(at) for at in positions.values()]
                        yield pa.RecordBatch.from_arrays(arrays, names=list(positions))
            except pa.ArrowInvalid as problem:
                raise ValueError(
                    f"{name}: it is no Parquet file, or cut off or damaged ({oneline(problem)}); "
                    "write or copy it again"
                ) from problem

    return Source(name, batches)
