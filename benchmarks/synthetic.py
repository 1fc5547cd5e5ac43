"""How long synthetic data takes, and how much memory."""

from typing import Annotated

import typer

from benchmarks import report
from benchmarks.apart import Cost, apart, cost
from safecf.data.datasets.synthetic import SHAPES, synthetic


def measure(name: str, seed: int) -> Cost:
    """Return what it takes to draw a named shape."""
    synthetic(200, 100, 2000)  # loads code
    return cost(lambda: synthetic(name, seed=seed))


def main(
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
) -> None:
    """Draw every named shape, each in a process of its own."""
    rows = []
    for name, shape in SHAPES.items():
        found = Cost(*apart("benchmarks.synthetic", "measure", name, seed))
        size = 8 * (shape.users + 1) + 8 * shape.interactions
        sizes = [name, f"{shape.users:,} x {shape.items:,}", f"{shape.interactions:,}"]
        taken = [f"{found.seconds:.1f}", f"{found.cpu:.1f}"]
        rows.append([*sizes, *taken, f"{size / 2**20:.0f}", f"{found.rise / 2**20:.0f}"])
        print(rows[-1], flush=True)
    header = ["shape", "matrix", "interactions", "seconds", "CPU seconds"]
    page = report.write(
        "synthetic",
        "Synthetic data",
        "Time of `safecf.datasets.synthetic` on one core, and how far the resident size "
        "rises, the matrix included.",
        report.table([*header, "matrix, MiB", "peak, MiB"], rows),
    )
    print(page.read_text())
