"""Tuning: spaces of options to search, and the objective that ranks the trials.

>>> space = {"regularization": LogUniform(1e-3, 1e-2), "tail": Choice((0.2, 0.3))}
>>> objective = Objective("recall@20", levels=(1.0, 0.3))
>>> trials = []
>>> for options in sample(space, 64):  # or grid(space); near(space, centres, 32, width=0.2)
...     model = SAFER2(**options).fit(split.training)
...     value = objective(evaluate(model, split, on="validation").scores)
...     trials.append(Trial(options, [value]))
>>> best(trials, 3)
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
