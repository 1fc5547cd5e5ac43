"""Where `tuning` looks: the ranges of the paper's table, and wider ones of our own."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from safecf.tuning import Choice, LogUniform, Objective, Space, Uniform, grid, sample

SMALL = {"factors": Choice((4,)), "block_size": Choice((2,)), "batch_size": Choice((50,))}

MEAN = Objective("recall@20", (1.0,))
BOTH = Objective("recall@20", (1.0, 0.3))


@dataclass(frozen=True)
class Search:
    """A model, the ranges of its options, and what is to be large for the validation users.

    Parameters
    ----------
    which, name, model
        The set and the name of the preset that it finds, and the class of the model.
    space, fixed
        The options that are tried, and those that are not.
    epochs
        Of the search; the validation users are scored after each of them.
    final
        Of the repetitions: the best of these is the number of iterations of the preset.
    objective
        What is to be large.
    trials
        Number of random trials, at most; None means the whole grid.
    """

    which: str
    name: str
    model: str
    space: Space
    fixed: dict[str, Any] = field(default_factory=dict)
    epochs: tuple[int, ...] = (20,)
    final: tuple[int, ...] = (50,)
    objective: Objective = MEAN
    trials: int | None = None

    def tried(self, trials: int, whole: bool) -> list[dict[str, Any]]:
        """Return the options to try: random ones, or the grid, of which some if not the `whole`."""
        if self.trials is not None:
            found = sample(self.space, min(trials, self.trials))
        else:
            found = grid(self.space)
            if not whole:
                order = np.random.default_rng(0).permutation(len(found))
                found = [found[place] for place in order[:trials]]
        return [{**self.fixed, **each} for each in found]


# The table of hyperparameter ranges, as grids; d = 32 as on ML-1M.
_D32 = {"factors": 32}
_TAIL = {"factors": 32, "tail": 0.3}
_NORMALISED = {
    "unobserved_weight": LogUniform(1e-4, 1e-2),
    "regularization": LogUniform(1e-4, 1e-2),
}
_KERNEL = {**_TAIL, "unobserved_weight": 0.004, "regularization": 0.004, "quantile_steps": 5}


def _kernel(name: str, kernel: str) -> Search:
    """Only the bandwidth differs from the SAFER2 of the paper."""
    space = {"bandwidth": LogUniform(0.04, 2.0, 12)}
    return Search("grid", name, "SAFER2", space, {**_KERNEL, "kernel": kernel})


GRIDS = [
    Search(
        "grid",
        "iALS",
        "IALS",
        {"unobserved_weight": LogUniform(1e-2, 1.0), "regularization": LogUniform(5e-4, 0.1, 7)},
        _D32,
    ),
    Search("grid", "ERM-MF", "ERMMF", _NORMALISED, _TAIL),
    Search(
        "grid",
        "SAFER2",
        "SAFER2",
        {**_NORMALISED, "bandwidth": LogUniform(0.1, 1.0, 5)},
        {**_TAIL, "kernel": "gaussian", "quantile_steps": 5},
    ),
    _kernel("SAFER2, Epanechnikov", "epanechnikov"),
    _kernel("SAFER2, logistic", "logistic"),
    _kernel("SAFER2, uniform", "uniform"),
    _kernel("SAFER2, triangular", "triangular"),
    Search(
        "grid",
        "CVaR-MF",
        "CVaRMF",
        {
            "unobserved_weight": LogUniform(1e-3, 0.1, 4),
            "regularization": LogUniform(1e-4, 1e-2, 4),
            "step_size": Uniform(0.1, 0.5, 3),
        },
        _TAIL,
        epochs=(500,),
        final=(1000,),
    ),
    Search(
        "grid",
        "Mult-VAE",
        "MultVAE",
        {
            "step_size": LogUniform(1e-4, 1e-2, 3),
            "batch_size": Choice((50, 100, 200, 300, 400, 500)),
            "beta": Uniform(0.1, 1.0, 3),
        },
        {"factors": 32, "device": "cpu"},
        epochs=(100,),
        final=(100,),
    ),
]

_EPOCHS, _FINAL = (10, 15, 20), (10, 15, 20, 30, 40, 50)


def wide(factors: tuple[int, ...], plain: Space, normalised: Space) -> list[Search]:
    """Return random searches, 64 trials each, given the ranges of iALS, and of the others."""

    def random(name: str, model: str, space: Space, **fixed: Any) -> Search:
        ranges = {"factors": Choice(factors), **space}
        return Search("tuned", name, model, ranges, fixed, _EPOCHS, _FINAL, BOTH, 64)

    return [
        random("iALS", "IALS", plain),
        random("ERM-MF", "ERMMF", normalised, tail=0.3),
        random(
            "SAFER2",
            "SAFER2",
            {**normalised, "tail": Choice((0.2, 0.3, 0.5)), "bandwidth": LogUniform(0.06, 0.5)},
            kernel="gaussian",
            quantile_steps=5,
        ),
    ]


def ridges(weights: tuple[float, float], ridge: tuple[float, float]) -> Space:
    """Return the ranges of b and lambda."""
    return {"unobserved_weight": LogUniform(*weights), "regularization": LogUniform(*ridge)}


MULT_VAE = Search(
    "tuned",
    "Mult-VAE",
    "MultVAE",
    {
        "factors": Choice((100, 200, 400)),
        "step_size": LogUniform(5e-4, 1e-2),
        "batch_size": Choice((100, 200, 400)),
        "beta": Uniform(0.05, 0.5),
        "dropout": Choice((0.3, 0.5, 0.7)),
    },
    {"device": "cpu"},
    epochs=(100,),
    final=(100,),
    objective=BOTH,
    trials=24,
)

EASE = Search(
    "tuned",
    "EASE",
    "EASE",
    {"regularization": LogUniform(50.0, 2000.0, 12)},
    epochs=(1,),
    final=(1,),
    objective=BOTH,
)

CVAR_MF = Search(
    "tuned",
    "CVaR-MF",
    "CVaRMF",
    {
        "factors": Choice((64, 128)),
        **ridges((5e-5, 5e-3), (1e-4, 1e-2)),
        "step_size": Uniform(0.1, 0.5),
    },
    {"tail": 0.3},
    epochs=(500,),
    final=(1000,),
    objective=BOTH,
    trials=16,
)

# On Gowalla, with 41 thousand items, EASE would need 19 GiB, and an epoch of Mult-VAE the better
# part of a minute.
SEARCHES = {
    "ml-1m": [
        *wide(
            (128, 256, 512, 1024),
            ridges((0.02, 1.0), (1e-3, 3e-2)),
            ridges((5e-4, 2e-2), (1e-3, 3e-2)),
        ),
        MULT_VAE,
        EASE,
        *GRIDS,
    ],
    "gowalla": [
        *wide(
            (64, 128, 256), ridges((5e-3, 0.5), (1e-4, 1e-2)), ridges((5e-5, 2e-3), (1e-4, 1e-2))
        ),
        CVAR_MF,
    ],
}


def searches(data: str) -> list[Search]:
    """Return the searches on a data set; on "tiny" those of ml-1m, made small."""
    if data != "tiny":
        return SEARCHES[data]
    return [
        Search(
            each.which,
            each.name,
            each.model,
            {name: SMALL.get(name, kept) for name, kept in each.space.items()},
            {name: 4 if name == "factors" else value for name, value in each.fixed.items()},
            (1,),
            (1,) if each.model in ("EASE", "MultVAE") else (1, 2),
            each.objective,
            each.trials,
        )
        for each in SEARCHES["ml-1m"]
    ]
