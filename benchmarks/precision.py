"""What rounding and tolerance do to ranking: recall on MovieLens-1M by the solver's tolerance."""

import time

import numpy as np

from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import long_tailed
from safecf import datasets
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.evaluation import evaluate
from safecf.models.presets import presets

COLUMNS = {
    f"{name}_{k}": (f"recall@{k}", tail)
    for k in (20, 50)
    for name, tail in (("mean", 1.0), ("tail", 0.3))
}
SEEDS = 5


def measure(size: Size, sets: dict[str, list[str]], ways: dict[str, Row]) -> Found:
    """Train presets from the same starts in several ways, those of PyTorch on the device; score."""
    split, seeds = _split(size), max(2, round(SEEDS * min(1, size.scale)))
    yield "setting", {"seeds": seeds}
    for name, (which, model) in sets.items():
        preset = presets("ml-1m", which)[model]
        for label, given in ways.items():
            where = {"device": size.device} if "backend" in given else {}
            runs, begin = [], time.perf_counter()
            for seed in range(seeds):
                made = preset.make(**given, **where, random_state=seed, num_threads=size.threads)
                made.fit(split.train, show_progress=False)
                scores = evaluate(made, split, k=(20, 50), metrics=("recall",))
                recalls = [scores.tail(*column) for column in COLUMNS.values()]
                runs.append([*recalls, made.history[-1].objective])
            row: Row = {"model": name, "tolerance": label.format(device=size.device)}
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
