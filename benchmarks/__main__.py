"""`python -m benchmarks NAME`: measure, and write the page under docs/results/."""

import sys

from benchmarks.harness import EXPERIMENTS
from reproduction.command import main

NAMES = {name: f"benchmarks.harness:EXPERIMENTS.{name}" for name in vars(EXPERIMENTS)}
ABOUT = """Measure speed and memory beside a peer or the machine's own limit, and write a page.

A part that is not measured keeps its rows, with the commit and the machine that made them. With
--scale below 1 everything is smaller, and the page is NAME-part.md. The peers are installed from
benchmarks/requirements.txt; without them, their rows are left out. On a lent machine with a GPU,
measure with --rows, copy docs/results/gpu.json from there, and write the page with --render.
SAFECF_COMMIT names the commit where the files are a copy without their history, SAFECF_DATA the
folder of ml-1m.parquet. For example:
python -m benchmarks gpu --part topk --device cuda
"""

if __name__ == "__main__":
    sys.exit(main(NAMES, ABOUT))
