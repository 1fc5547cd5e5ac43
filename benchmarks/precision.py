"""What rounding and tolerance do to ranking: recall on MovieLens-1M by the solver's tolerance."""

import time
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.records import Options, progress
from safecf import datasets
from safecf.evaluation import evaluate
from safecf.models.presets import presets

# by data that training reads: the default, the same without rounding, nearly exact
WAYS: dict[str, dict[str, Any]] = {
    "1e-3, bfloat16 (default)": {"tolerance": 1e-3},
    "9.7e-4, float32": {"tolerance": 9.7e-4},
    "1e-6, float32": {"tolerance": 1e-6},
}
COLUMNS = [("recall@20", 1.0), ("recall@20", 0.3), ("recall@50", 1.0), ("recall@50", 0.3)]
SEEDS = 5
SETS = {"iALS, d = 32": ("paper", "iALS"), "SAFER2, d = 32": ("paper", "SAFER2")}
SETS["SAFER2, d = 256"] = ("tuned", "SAFER2")


def measure(options: Options) -> dict[str, Any]:
    """Train with every tolerance from the same starts, and score the test users."""
    return _measure(WAYS, options)


def measure_devices(options: Options) -> dict[str, Any]:
    """Train and score on the CPU, and on a device in both precisions, from the same starts."""
    there = {"backend": "torch", "device": options.device}
    ways = {
        "1e-3, CPU": {"tolerance": 1e-3},
        f"1e-3, {options.device}: bfloat16, TF32 (default)": {"tolerance": 1e-3, **there},
        f"1e-6, {options.device}: float32": {"tolerance": 1e-6, **there},
    }
    return _measure(ways, options)


def _measure(ways: dict[str, dict[str, Any]], options: Options) -> dict[str, Any]:
    split = datasets.paper_split("ml-1m")
    seeds = max(2, round(SEEDS * min(1, options.scale)))
    found = []
    for name, (which, model) in SETS.items():
        preset = presets("ml-1m", which)[model]
        for label, given in ways.items():
            runs, begin = [], time.perf_counter()
            for seed in range(seeds):
                made = preset.make(**given, random_state=seed, num_threads=options.threads)
                made.fit(split.train, show_progress=False)
                scores = evaluate(made, split, k=(20, 50), metrics=("recall",))
                recalls = [scores.tail(*column) for column in COLUMNS]
                runs.append([*recalls, made.history[-1].objective])
            seconds = (time.perf_counter() - begin) / seeds
            progress(f"{name}, {label}: {np.mean(runs, axis=0).round(4)}, {seconds:.2f} s each")
            found.append({"model": name, "tolerance": label, "runs": runs, "seconds": seconds})
    return {"seeds": seeds, "found": found}


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write means and standard deviations over the starts."""
    rows = []
    for each in results["found"]:
        mean, spread = np.mean(each["runs"], axis=0), np.std(each["runs"], axis=0, ddof=1)
        cells = [f"{m:.4f} ± {s:.4f}" for m, s in zip(mean[:-1], spread[:-1], strict=True)]
        seconds = report.short(each["seconds"]) if "seconds" in each else "-"
        rows.append([each["model"], each["tolerance"], *cells, f"{mean[-1]:.5g}", seconds])
    header = ["", "tolerance of spectral CG", "R@20", "R@20, tail 0.3", "R@50", "R@50, tail 0.3"]
    return [
        f"MovieLens-1M, the paper's split, test users; means over {results['seeds']} starts, the "
        "same ones in every row of a model, ± their standard deviation. The objective is that of "
        "training, the seconds are those of a fit with its evaluation.",
        report.table([*header, "objective", "seconds"], rows),
    ]
