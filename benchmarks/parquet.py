"""How long a large Parquet log takes to become `Interactions`, and how much memory."""

import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import typer

from benchmarks import report
from benchmarks.apart import Cost, apart, cost
from safecf.data.matrices.interactions import Interactions

USERS, ITEMS, PER_FILE = 2_000_000, 200_000, 12_500_000


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


def main(
    rows: Annotated[int, typer.Option(help="Rows of the log.")] = 100_000_000,
) -> None:
    """Read a log with integer ids and one with strings, each in a process of its own."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for names in (False, True):
            place = Path(folder) / f"names-{names}"
            size = write_log(place, rows, names)
            found = Cost(*apart("benchmarks.parquet", "read", str(place)))
            log = ["strings" if names else "integers", f"{rows:,}", f"{size / 2**30:.2f}"]
            taken = [f"{found.seconds:.0f}", f"{found.cpu:.0f}", f"{found.rise / 2**30:.1f}"]
            lines.append([*log, *taken, f"{found.rise / rows:.0f}"])
            print(lines[-1], flush=True)
    header = ["user ids", "rows", "files, GiB", "seconds", "CPU seconds", "peak, GiB"]
    page = report.write(
        "parquet",
        "Interactions from Parquet",
        f"`Interactions.from_parquet` of a log with {USERS:,} users and {ITEMS:,} items in files "
        f"of {PER_FILE:,} rows. The peak is how far the resident size rises.",
        report.table([*header, "bytes per row"], lines),
    )
    print(page.read_text())
