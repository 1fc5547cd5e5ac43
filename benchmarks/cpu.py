"""Speed on the CPU, all of it: epochs, threads, growth, top-k and quality beside the peers."""

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from benchmarks import epochs, growth, precision, quality, threads, topk
from benchmarks.parts import Part, Parts
from benchmarks.records import Options

PARTS = {
    "ml-20m": Part(
        "One epoch, ML-20M shape", partial(epochs.measure, shape="ml-20m"), epochs.section
    ),
    "msd": Part("One epoch, MSD shape", partial(epochs.measure, shape="msd"), epochs.section),
    "threads": Part("Threads", threads.measure, threads.section),
    "growth": Part("Growth", growth.measure, growth.section),
    "topk": Part("Top-k", topk.measure, topk.section),
    "quality": Part("Time to quality", quality.measure, quality.section),
    "precision": Part("Precision and ranking", precision.measure, precision.section),
}
CPU = Parts("cpu", "Speed on the CPU", epochs.ABOUT, PARTS)
PEERS = ("implicit", "irspack", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of the peers that are installed."""
    found = {}
    for peer in PEERS:
        try:
            found[peer] = version(peer)
        except PackageNotFoundError:
            continue
    return found


def main(
    part: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(PARTS)}, or page to measure nothing; may be repeated."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Below 1 everything is smaller, and stays under build/.")
    ] = 1.0,
    threads: Annotated[int, typer.Option(help="Threads of everything but threads and growth.")] = 2,
    repeats: Annotated[int, typer.Option(help="Timed, alternating repeats.")] = 5,
) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them."""
    CPU.run(part, Options(scale, threads, repeats), versions)
