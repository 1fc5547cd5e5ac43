"""Tuning: options of a model are searched on the validation users, for the mean and the tail.

>>> tuning = tune(SAFER2(factors=64), split, objective="both", trials=50)
>>> tuning.best_options, tuning.front
"""

from safecf.tuning.objective import Objective, Scores
from safecf.tuning.result import Tuning
from safecf.tuning.sampler import suggest
from safecf.tuning.space import (
    Around,
    Choice,
    LogInteger,
    LogUniform,
    Range,
    Space,
    Uniform,
    grid,
    parse_range,
)
from safecf.tuning.trials import Trial, pareto_front
from safecf.tuning.tuner import TuningInterrupted, tune

__all__ = [
    "Around",
    "Choice",
    "LogInteger",
    "LogUniform",
    "Objective",
    "Range",
    "Scores",
    "Space",
    "Trial",
    "Tuning",
    "TuningInterrupted",
    "Uniform",
    "grid",
    "pareto_front",
    "parse_range",
    "suggest",
    "tune",
]
