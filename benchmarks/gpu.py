"""Speed on a GPU: epochs, a whole fit, top-k, agreement with the float64 twin, and ranking.

Measuring needs PyTorch, and Triton for the kernels; no network and no matplotlib. The results are
kept under build/benchmarks/, so that the page can be written on another machine:

    python -m benchmarks gpu                  # where the GPU is
    cp gpu-*.json build/benchmarks/           # where the page is written
    python -m benchmarks gpu --part page

SAFECF_COMMIT names the commit where the files are a copy without their history, SAFECF_DATA the
folder of ml-1m.parquet.
"""

import os
from functools import partial

from benchmarks import precision
from benchmarks.parts import Part, Parts
from benchmarks.records import Options

PARTS = ("ml-20m", "msd", "run", "topk", "agreement", "precision")


def gpu() -> Parts:
    """Return the parts; PyTorch is imported here, since other benchmarks do without."""
    from benchmarks import agreement, gpu_epochs, gpu_run, gpu_topk  # noqa: PLC0415

    found = (
        Part(
            "One epoch, ML-20M shape",
            partial(gpu_epochs.measure, shape="ml-20m"),
            gpu_epochs.section,
        ),
        Part("One epoch, MSD shape", partial(gpu_epochs.measure, shape="msd"), gpu_epochs.section),
        Part("A whole fit", gpu_run.measure, gpu_run.section),
        Part("Top-k", gpu_topk.measure, gpu_topk.section),
        Part("Agreement with the float64 twin", agreement.measure, agreement.section),
        Part("Precision and ranking", precision.measure_devices, precision.section),
    )
    parts = dict(zip(PARTS, found, strict=True))
    return Parts("gpu", "Speed on a GPU", gpu_epochs.ABOUT, parts, "With")


def main(
    part: list[str] | None = None,
    scale: float = 1.0,
    threads: int = len(os.sched_getaffinity(0)),
    repeats: int = 10,
    device: str = "cuda",
) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them.

    --part may be repeated: ml-20m, msd, run, topk, agreement, precision, or page to measure
    nothing. With --scale below 1 everything is smaller, and stays under build/. --threads are
    those of the CPU backend beside it, which 0 leaves out; --repeats the timed epochs.
    """
    from benchmarks.devices import versions  # noqa: PLC0415 - needs PyTorch

    options = Options(scale, threads, repeats, device)
    gpu().run(part, options, partial(versions, device))
