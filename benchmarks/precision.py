"""What rounding and tolerance do to ranking: recall on MovieLens-1M by the solver's tolerance."""

import time
from typing import Any

import numpy as np

from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import long_tailed
from safecf import datasets
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.evaluation import evaluate
from safecf.models.presets import presets

# by data that training reads: the default, the same without rounding, nearly exact
WAYS: dict[str, dict[str, Any]] = {
    "1e-3, bfloat16 (default)": {"tolerance": 1e-3},
    "9.7e-4, float32": {"tolerance": 9.7e-4},
    "1e-6, float32": {"tolerance": 1e-6},
}
COLUMNS = {
    "mean_20": ("recall@20", 1.0),
    "tail_20": ("recall@20", 0.3),
    "mean_50": ("recall@50", 1.0),
    "tail_50": ("recall@50", 0.3),
}
SEEDS = 5
SETS = {"iALS, d = 32": ("paper", "iALS"), "SAFER2, d = 32": ("paper", "SAFER2")}
SETS["SAFER2, d = 256"] = ("tuned", "SAFER2")


def measure(size: Size, device: bool = False) -> Found:
    """Train from the same starts with every tolerance, or on the CPU and a device; score."""
    there, ways = {"backend": "torch", "device": size.device}, WAYS
    if device:
        ways = {
            "1e-3, CPU": {"tolerance": 1e-3},
            f"1e-3, {size.device}: bfloat16, TF32 (default)": {"tolerance": 1e-3, **there},
            f"1e-6, {size.device}: float32": {"tolerance": 1e-6, **there},
        }
    split, seeds = _split(size), max(2, round(SEEDS * min(1, size.scale)))
    yield "setting", {"seeds": seeds}
    for name, (which, model) in SETS.items():
        preset = presets("ml-1m", which)[model]
        for label, given in ways.items():
            runs, begin = [], time.perf_counter()
            for seed in range(seeds):
                made = preset.make(**given, random_state=seed, num_threads=size.threads)
                made.fit(split.train, show_progress=False)
                scores = evaluate(made, split, k=(20, 50), metrics=("recall",))
                recalls = [scores.tail(*column) for column in COLUMNS.values()]
                runs.append([*recalls, made.history[-1].objective])
            row: Row = {"model": name, "tolerance": label}
            row["seconds"] = (time.perf_counter() - begin) / seeds
            mean, deviation = np.mean(runs, axis=0).tolist(), np.std(runs, axis=0, ddof=1).tolist()
            for place, column in enumerate(COLUMNS):
                row[column] = {"mean": mean[place], "deviation": deviation[place]}
            yield "scores", row | {"objective": mean[-1]}


def _split(size: Size) -> Split:
    """Return the paper's split, or a small one of synthetic data to try the benchmark."""
    if size.scale == 1:
        return datasets.paper_split("ml-1m")
    matrix = long_tailed(*size.shape(6000, 3700, 500_000))
    return Log.of_matrix(matrix).strong_generalization(heldout=len(matrix.indptr) // 10, seed=0)
