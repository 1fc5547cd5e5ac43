"""Tuning: where to look for settings, and which of those that were tried are best.

>>> space = {"regularization": LogUniform(1e-3, 1e-2), "tail": Choice((0.2, 0.3))}
>>> trials = sample(space, 64, seed=0)  # or grid(space)
... # then some near the best: near(space, [best_of_them], 32, width=0.2)
>>> scores = [objective(evaluate(make(trial), split, on="validation")) for trial in trials]
"""

from safecf.tuning.objective import Objective, Trial, best
from safecf.tuning.space import Choice, LogUniform, Range, Space, Uniform, grid, near, sample

__all__ = [
    "Choice",
    "LogUniform",
    "Objective",
    "Range",
    "Space",
    "Trial",
    "Uniform",
    "best",
    "grid",
    "near",
    "sample",
]
