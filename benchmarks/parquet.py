"""How long a large Parquet log takes to become `Interactions`, and how much memory."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks.clock import apart, cost
from benchmarks.harness import Found, Row, Size
from safecf.data.matrices.interactions import Interactions

USERS, ITEMS, ROWS, PER_FILE = 2_000_000, 200_000, 100_000_000, 12_500_000


def measure(size: Size) -> Found:
    """Read a log with integer ids and one with strings, each in a process of its own."""
    yield "setting", {"users": USERS, "items": ITEMS, "per_file": PER_FILE}
    total = size.count(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for ids in ("integers", "strings"):
            place = Path(folder) / ids
            written = write_log(place, total, names=ids == "strings")
            row = {"ids": ids, "rows": total, "files": written, **apart(read, str(place))}
            yield "logs", {**row, "per_row": row["rise"] / total}


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


def read(folder: str) -> Row:
    """Read the log, and return what it took."""
    return cost(lambda: Interactions.from_parquet(folder))
