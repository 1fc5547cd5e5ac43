"""The experiments of the paper, and some of our own."""

from typing import Any

from reproduction import ABOUT
from reproduction.experiment import Experiment


def declared(name: str, cases: Any, tables: Any, draw: Any = None, then: Any = None) -> Experiment:
    """Return an experiment of experiments.toml; `draw` makes its figure."""
    about = {key: each for key, each in ABOUT[name].items() if key != "at"}
    figures = {"": draw} if draw else {}
    return Experiment(name, cases=cases, tables=tables, figures=figures, then=then, **about)
