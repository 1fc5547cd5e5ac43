"""The searches of `tuning`: the ranges of the paper's table, and wider ones."""

from dataclasses import replace
from typing import Any

from reproduction.search import BOTH, Search
from safecf.tuning import Choice, LogUniform, Space, Uniform

# What replaces ranges on "tiny" data.
SMALL = {"factors": Choice((4,)), "block_size": Choice((2,)), "batch_size": Choice((50,))}

# The paper's table of hyperparameter ranges, as grids; d = 32 as on ML-1M.
_D32 = {"factors": 32}
_PAPER = {"ridge_in_risk": False}  # the users' ridge stands outside the risk
_TAIL = {"factors": 32, "tail": 0.3, **_PAPER}
_NORMALISED = {
    "unobserved_weight": LogUniform(1e-4, 1e-2),
    "regularization": LogUniform(1e-4, 1e-2),
}
_KERNEL = {**_TAIL, "unobserved_weight": 0.004, "regularization": 0.004, "quantile_steps": 5}


def _kernel(name: str, kernel: str) -> Search:
    """Return the search for the bandwidth of a kernel; the other options are the paper's."""
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


_SMOOTH = {"tail": 0.3, "kernel": "gaussian", "quantile_steps": 5, **_PAPER}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "iALS": ("IALS", {}),
    "ERM-MF": ("ERMMF", {"tail": 0.3, **_PAPER}),
    "SAFER2": ("SAFER2", _SMOOTH),
    "SAFER2, rho = 1": ("SAFER2", _SMOOTH),
    "SAFER2, ridge in the risk": ("SAFER2", {**_SMOOTH, "ridge_in_risk": True}),
}


def random_searches(
    factors: int,
    sizes: tuple[int, ...],
    trials: int,
    ranges: dict[str, Space],
    starts: dict[str, dict[str, Any]] | None = None,
) -> list[Search]:
    """Return searches for all of `_KINDS` with ranges; the best are repeated with all `sizes`."""
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
            start=(starts or {}).get(name),
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
    {"normalisation": 0.0, "dropout": 0.0},
    epochs=(1,),
    final=(1,),
    objective=BOTH,
)

WEIGHTED_EASE = Search(
    "tuned",
    "EASE, weighted",
    "EASE",
    {
        "regularization": LogUniform(30.0, 1000.0),
        "normalisation": Uniform(0.0, 1.0),
        "dropout": Uniform(0.0, 0.8),
    },
    epochs=(1,),
    final=(1,),
    objective=BOTH,
    trials=32,
)


def cvar_mf(unobserved: tuple[float, float], trials: int) -> Search:
    """Return the search for CVaR-MF, with few trials, since each takes hundreds of epochs."""
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
        "unobserved_weight": LogUniform(0.03, 3.0),
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
    "SAFER2, ridge in the risk": {
        "unobserved_weight": LogUniform(5e-4, 0.04),
        "regularization": LogUniform(1e-3, 2.5e-2),
        "normalisation": Uniform(0.5, 1.0),
        "bandwidth": LogUniform(0.02, 1.5),
    },
}
# What the defaults are on the training users of ML-1M: "auto" resolved, in three digits.
_EVERYBODY = {"regularization": 0.005, "unobserved_weight": 0.416}
_EQUAL = {"regularization": 0.005, "unobserved_weight": 0.00433}
_TAILED = {**_EQUAL, "bandwidth": 0.104}
_ML_1M_DEFAULTS: dict[str, dict[str, Any]] = {
    "iALS": _EVERYBODY,
    "ERM-MF": {**_EQUAL, "normalisation": 1.0},
    "SAFER2": {**_TAILED, "normalisation": 1.0},
    "SAFER2, rho = 1": _TAILED,
    "SAFER2, ridge in the risk": {**_TAILED, "normalisation": 1.0},
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

# Not on Gowalla, with its 41 thousand items: EASE would need 19 GiB, and Mult-VAE almost a minute
# per epoch.
SEARCHES = {
    "ml-1m": [
        *random_searches(256, (128, 256, 512, 1024), 64, _ML_1M, _ML_1M_DEFAULTS),
        cvar_mf((1e-3, 0.05), 16),
        EASE,
        WEIGHTED_EASE,
        MULT_VAE,
        *GRIDS,
    ],
    "gowalla": [*random_searches(128, (64, 128, 256), 24, _GOWALLA), cvar_mf((5e-5, 5e-3), 8)],
}


def searches(data: str) -> list[Search]:
    """Return the searches on a data set; on "tiny" those of ml-1m with few factors and epochs."""
    if data != "tiny":
        return SEARCHES[data]
    return [
        replace(
            each,
            space={name: SMALL.get(name, kept) for name, kept in each.space.items()},
            fixed={name: 4 if name == "factors" else kept for name, kept in each.fixed.items()},
            epochs=(1,),
            final=(1,) if each.model in ("EASE", "MultVAE") else (1, 2),
            sizes=(4, 6) if each.sizes else (),
        )
        for each in SEARCHES["ml-1m"]
    ]
