"""Tuning: where to look for settings, and which of those that were tried are best.

>>> space = {"regularization": LogUniform(1e-3, 1e-2), "tail": Choice((0.2, 0.3))}
>>> trials = sample(space, 64, seed=0)  # or grid(space)
>>> scores = [objective(evaluate(make(trial), split, on="validation")) for trial in trials]
"""

from safecf.tuning.objective import Objective, Trial, best
from safecf.tuning.space import Choice, LogUniform, Range, Space, Uniform, grid, sample

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
    "sample",
]
