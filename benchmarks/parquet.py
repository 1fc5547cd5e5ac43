"""How long a large Parquet log takes to become `Interactions`, and how much memory."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks.clock import Cost, apart, cost
from benchmarks.harness import Part, Size, Tables, benchmark, progress
from safecf.data.matrices.interactions import Interactions

USERS, ITEMS, ROWS, PER_FILE = 2_000_000, 200_000, 100_000_000, 12_500_000
EXPERIMENT = benchmark("parquet", "Interactions from Parquet", Part("", "parquet:measure"))


def measure(size: Size) -> Tables:
    """Read a log with integer ids and one with strings, each in a process of its own."""
    total, rows = size.count(ROWS), []
    with tempfile.TemporaryDirectory() as folder:
        for ids in ("integers", "strings"):
            place = Path(folder) / ids
            written = write_log(place, total, names=ids == "strings")
            found = Cost(*apart("parquet", "read", str(place)))._asdict()
            row = {"ids": ids, "rows": total, "files": written, **found}
            rows.append(row | {"per_row": found["rise"] / total})
            progress(str(rows[-1]))
    return {"setting": [{"users": USERS, "items": ITEMS, "per_file": PER_FILE}], "logs": rows}


def write_log(folder: Path, rows: int, names: bool) -> int:
    """Write a long-tailed log of `rows` events into several files; return their size in bytes."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number, start in enumerate(range(0, rows, PER_FILE)):
        count = min(PER_FILE, rows - start)
        users = rng.integers(USERS, size=count)
        items = (ITEMS * rng.random(count) ** 3).astype(np.int64)
        columns = {"user": pa.array(users), "item": pa.array(items)}
        if names:
            columns["user"] = pa.compute.binary_join_element_wise(
                pa.scalar("user-"), columns["user"].cast(pa.string()), ""
            )
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")
    return sum(file.stat().st_size for file in folder.iterdir())


def read(folder: str) -> Cost:
    """Read the log, and return what it took."""
    return cost(lambda: Interactions.from_parquet(folder))
