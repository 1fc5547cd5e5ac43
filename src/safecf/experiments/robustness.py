"""`robustness`: how far SAFER2 gets over ERM-MF and iALS, from split to split."""

from safecf.experiments.base import Cell, Experiment, Options, Results
from safecf.experiments.data import repeated_seeds
from safecf.experiments.page import Page
from safecf.experiments.quality import quality


def cells(options: Options) -> list[Cell]:
    """Return every model on every split, from every start."""
    return [
        Cell(
            quality,
            {
                "data": options.data,
                "split": split,
                "on": "test",
                "model": "IALS",
                "options": {"factors": 4, "iterations": 2},
                "seed": seed,
            },
        )
        for split in repeated_seeds(options.splits)
        for seed in range(options.seeds)
    ]


def render(results: Results, options: Options) -> Page:
    """Return a page."""
    return Page(
        ["Hello"],
        [
            {"split": each.settings["split"], "value": float(each.record["recall@20"].mean())}
            for each in results
        ],
    )


EXPERIMENT = Experiment(
    "robustness",
    "Robustness over splits",
    'figure "distributions of relative performances"',
    cells,
    render,
    splits=50,
    seeds=10,
)
