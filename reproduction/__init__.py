"""Experiments: every table and figure of the paper, each by one command.

An experiment is one file with an `EXPERIMENT`, and one line in `MODULES` below. It says which
*cells* it needs, and how to show their results; a cell is a function of a module, and settings:

    def cells(options: Options) -> list[Cell]:
        return [
            Cell(quality, {"data": options.data, "split": split, "on": "test", "seed": seed,
                           "model": "SAFER2", "options": {"factors": 32}})
            for split in repeated_seeds(options.splits)
            for seed in range(options.seeds)
        ]

    def render(results: Results, options: Options) -> Page:
        values = [tail_mean(each.record["recall@20"], 0.3) for each in results]
        return Page(
            blocks=["What was done.", table(["splits", "mean"], [[len(values), np.mean(values)]])],
            rows=[{**each.settings, "value": v} for each, v in zip(results, values)],
            figure=lambda: draw(values),
        )

    EXPERIMENT = Experiment(
        "robustness", "Robustness over splits", 'Figure "distributions ..."',
        cells=cells, render=render, splits=50, seeds=10,
    )

- Settings are JSON values and hold all that the result depends on, but for the code: no paths, no
  number of threads. "data" names the data set; a worker gets the split with
  `experiments.data.load_split(settings["data"], settings["split"])`.
- The function of a cell, such as `quality.quality`, takes the settings and returns a record: a
  dictionary of numbers, texts, lists and numpy arrays (kept as float32). It runs in a process of
  its own, with `worker.threads()` threads. Cells are kept by function, settings and code version,
  so experiments that ask for the same cells share them. A change in the module of the function
  makes all its cells new: keep it apart from `cells` and `render`.
- `alone=True` is for what is timed: one cell at a time, with all cores.
- `then(results, options)` may ask for more cells, given the results of those before; it is asked
  again until it names no new ones.
- `data` names the data sets that it takes; `data=()` is for what needs none.
- Every experiment has to work on the data "tiny", for which `Experiment.data` need not allow it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from safecf.errors import choose

if TYPE_CHECKING:
    from reproduction.base import Experiment

# The files of the experiments, in the order of the paper, but for tuning: others use what it finds.
MODULES = {
    "cvar": "cvar",
    "check-function": "check_function",
    "tuning": "tuning",
    "table-1": "table_1",
    "quantiles": "quantiles",
    "robustness": "robustness",
    "runtime": "runtime",
    "walltime": "walltime",
    "bandwidth": "bandwidth",
    "sampling": "sampling",
    "xi-steps": "xi_steps",
    "kernels": "kernels",
    "dimensions": "dimensions",
    "frontier": "frontier",
    "sensitivity": "sensitivity",
}


def load(name: str) -> "Experiment":
    """Return an experiment by its name."""
    module = import_module(f"{__name__}.{choose('experiment', name, MODULES)}")
    found: Experiment = module.EXPERIMENT
    return found
