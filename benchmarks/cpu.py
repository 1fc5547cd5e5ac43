"""Speed on the CPU, all of it: epochs, threads, growth, top-k and quality beside the peers."""

from functools import partial
from importlib.metadata import PackageNotFoundError, version

from benchmarks import eigen, epochs, growth, precision, quality, threads, topk
from benchmarks.parts import Part, Parts
from benchmarks.records import Options

PARTS = {
    "ml-20m": Part(
        "One epoch, ML-20M shape", partial(epochs.measure, shape="ml-20m"), epochs.section
    ),
    "msd": Part("One epoch, MSD shape", partial(epochs.measure, shape="msd"), epochs.section),
    "threads": Part("Threads", threads.measure, threads.section),
    "eigen": Part("Eigenvectors", eigen.measure, eigen.section),
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
    part: list[str] | None = None, scale: float = 1.0, threads: int = 2, repeats: int = 5
) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them.

    --part may be repeated: ml-20m, msd, threads, eigen, growth, topk, quality, precision, or page
    to measure nothing. With --scale below 1 everything is smaller, and stays under build/.
    --threads are those of all parts but threads and eigen; --repeats are timed and alternate.
    """
    CPU.run(part, Options(scale, threads, repeats), versions)
