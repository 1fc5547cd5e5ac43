"""Where `tuning` looks: the ranges of the paper's table, and others of our own."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from safecf.tuning import Choice, LogUniform, Objective, Space, Uniform, grid, near, sample

SMALL = {"factors": Choice((4,)), "block_size": Choice((2,)), "batch_size": Choice((50,))}

WIDTHS = (0.2, 0.1, 0.05)  # how near the best the further rounds are, as a share of the ranges

MEAN = Objective("recall@20", (1.0,))
BOTH = Objective("recall@20", (1.0, 0.3))


def half(trials: int) -> int:
    """Return how many a further round tries, the first one having tried so many."""
    return -(-trials // 2)


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
        Number of random trials, at most, each round near the best having half as many; None means
        the whole grid, and no further rounds.
    sizes
        Numbers of factors that the best are repeated with; none: only what they were found with.
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
    sizes: tuple[int, ...] = ()

    def first(self, trials: int, whole: bool) -> list[dict[str, Any]]:
        """Return the options to try: random ones, or the grid, of which some if not the `whole`."""
        if self.trials is not None:
            found = sample(self.space, min(trials, self.trials))
        else:
            found = grid(self.space)
            if not whole:
                order = np.random.default_rng(0).permutation(len(found))
                found = [found[place] for place in order[:trials]]
        return [{**self.fixed, **each} for each in found]

    def nearby(
        self, centres: list[dict[str, Any]], count: int, number: int
    ) -> list[dict[str, Any]]:
        """Return the options to try in a further round, the first being number 0."""
        found = near(self.space, centres, count, WIDTHS[number], seed=1 + number)
        return [{**self.fixed, **each} for each in found]

    @property
    def budget(self) -> int:
        """How many settings the whole search tries."""
        if self.trials is None:
            return len(grid(self.space))
        return self.trials + len(WIDTHS) * half(self.trials)

    @property
    def largest(self) -> int | None:
        """The most factors that it tries; None for models that have none."""
        drawn = self.space["factors"].grid() if "factors" in self.space else []
        known = [*self.sizes, *drawn, self.fixed.get("factors", 0)]
        return max(known) or None

    def sized(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the options with every size."""
        return [{**options, "factors": size} for size in self.sizes] or [options]


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
    _kernel("SAFER2, Gaussian", "gaussian"),
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
            "batch_size": Choice((50, 200, 500)),
            "beta": Uniform(0.1, 1.0, 3),
        },
        {"factors": 32, "device": "cpu"},
        epochs=(50,),
        final=(50,),
    ),
]


_SMOOTH = {"tail": 0.3, "kernel": "gaussian", "quantile_steps": 5}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "iALS": ("IALS", {}),
    "ERM-MF": ("ERMMF", {"tail": 0.3}),
    "SAFER2": ("SAFER2", _SMOOTH),
    "SAFER2, rho = 1": ("SAFER2", _SMOOTH),
}


def wide(
    factors: int, sizes: tuple[int, ...], trials: int, ranges: dict[str, Space]
) -> list[Search]:
    """Return random searches with so many factors, the best then repeated with other `sizes`."""
    return [
        Search(
            "tuned",
            name,
            model,
            ranges[name],
            {"factors": factors, **fixed},
            epochs=(8, 12, 16),
            final=(8, 12, 16, 24, 32),
            objective=BOTH,
            trials=trials,
            sizes=sizes,
        )
        for name, (model, fixed) in _KINDS.items()
        if name in ranges
    ]


MULT_VAE = Search(
    "tuned",
    "Mult-VAE",
    "MultVAE",
    {
        "factors": Choice((64, 128, 256)),
        "step_size": LogUniform(1e-3, 1e-2),
        "batch_size": Choice((100, 200, 400)),
        "beta": LogUniform(0.02, 0.5),
        "dropout": Uniform(0.3, 0.8),
    },
    {"device": "cpu"},
    epochs=(50,),
    final=(50,),
    objective=BOTH,
    trials=16,
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


def cvar_mf(unobserved: tuple[float, float], trials: int) -> Search:
    """Return the search for CVaR-MF, whose hundreds of epochs leave time for few trials."""
    return Search(
        "tuned",
        "CVaR-MF",
        "CVaRMF",
        {
            "unobserved_weight": LogUniform(*unobserved),
            "regularization": LogUniform(1e-4, 1e-2),
            "step_size": Uniform(0.1, 0.5),
        },
        {"factors": 64, "tail": 0.3},
        epochs=(500,),
        final=(1000,),
        objective=BOTH,
        trials=trials,
    )


_ML_1M: dict[str, Space] = {
    "iALS": {
        "unobserved_weight": LogUniform(0.02, 1.0),
        "regularization": LogUniform(1e-3, 3e-2),
    },
    "ERM-MF": {
        "unobserved_weight": LogUniform(1e-3, 0.3),
        "regularization": LogUniform(1.5e-3, 1.5e-2),
        "normalisation": Uniform(0.0, 1.0),
    },
    "SAFER2": {
        "unobserved_weight": LogUniform(1e-3, 0.04),
        "regularization": LogUniform(1.5e-3, 1e-2),
        "normalisation": Uniform(0.5, 1.0),
        "bandwidth": LogUniform(0.06, 1.5),
    },
    "SAFER2, rho = 1": {
        "unobserved_weight": LogUniform(1e-3, 0.02),
        "regularization": LogUniform(1.5e-3, 1e-2),
        "bandwidth": LogUniform(0.06, 0.6),
    },
}
_GOWALLA: dict[str, Space] = {
    "iALS": {
        "unobserved_weight": LogUniform(5e-3, 0.5),
        "regularization": LogUniform(3e-4, 3e-2),
    },
    "ERM-MF": {
        "unobserved_weight": LogUniform(5e-5, 0.1),
        "regularization": LogUniform(3e-4, 1e-2),
        "normalisation": Uniform(0.0, 1.0),
    },
    "SAFER2": {
        "unobserved_weight": LogUniform(5e-5, 0.1),
        "regularization": LogUniform(3e-4, 1e-2),
        "normalisation": Uniform(0.0, 1.0),
        "bandwidth": LogUniform(0.03, 3.0),
    },
}

# On Gowalla, with 41 thousand items, EASE would need 19 GiB, and an epoch of Mult-VAE the better
# part of a minute.
SEARCHES = {
    "ml-1m": [
        *wide(256, (128, 256, 512, 1024), 64, _ML_1M),
        cvar_mf((1e-3, 0.05), 16),
        EASE,
        MULT_VAE,
        *GRIDS,
    ],
    "gowalla": [*wide(128, (64, 128, 256), 24, _GOWALLA), cvar_mf((5e-5, 5e-3), 8)],
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
            (4, 6) if each.sizes else (),
        )
        for each in SEARCHES["ml-1m"]
    ]
