"""Reproduction of the paper: each table and figure by one command, in a checkout.

An experiment is a file in `reproduction/experiments/` with an `EXPERIMENT`, and its name in `NAMES`
below. It defines the *cells* to run, and a page that shows their results. A cell is a function from
`reproduction/tasks/`, and its settings:

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

- Settings are JSON values that determine the result, apart from the code: no paths, no number of
  threads. "data" is the name of the data set; the function of a cell gets the split by
  `load_split(settings["data"], settings["split"])`.
- The function returns a record: a dictionary of numbers, texts, lists and numpy arrays (stored as
  float32). It runs in a worker process, with `worker.threads()` threads. Results are stored by
  function, settings and code version, so that experiments share cells. The source of the function's
  module is part of the code version: keep it apart from `cells` and `render`.
- `alone=True` is for experiments that measure time: one cell at a time, with all cores.
- `then(results, options)` returns further cells, given the results so far; it is called until none
  of them is new.
- `data` lists the data sets that the experiment accepts; `data=()` means that it needs none.
- Every experiment must run on the data "tiny", which need not be listed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from safecf.errors import choose

if TYPE_CHECKING:
    from reproduction.base import Experiment

# In the order of the paper; `tuning` comes before the experiments that use its presets.
NAMES = (
    "cvar",
    "check-function",
    "tuning",
    "table-1",
    "quantiles",
    "robustness",
    "runtime",
    "walltime",
    "bandwidth",
    "sampling",
    "xi-steps",
    "kernels",
    "dimensions",
    "frontier",
    "sensitivity",
    "constants",
    "defaults",
)


def load(name: str) -> "Experiment":
    """Return an experiment by its name."""
    choose("experiment", name, dict.fromkeys(NAMES))
    module = import_module(f"{__name__}.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found
