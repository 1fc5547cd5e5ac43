"""Safe collaborative filtering: recommenders that look after the worst-off users.

>>> model = safecf.SAFER2(factors=32).fit(user_items)
>>> ids, scores = model.recommend(7, user_items[7])
"""

TYPE_CHECKING = False  # the name means True to type checkers
if TYPE_CHECKING:
    from safecf import batch, datasets, split
    from safecf.data.matrices.interactions import Interactions
    from safecf.errors import (
        ConvergenceWarning,
        DivergenceError,
        FileFormatError,
        ModelFitError,
        NotFittedError,
        ParameterWarning,
        SolveError,
    )
    from safecf.evaluation import Comparison, Evaluation, compare, evaluate
    from safecf.models import (
        EASE,
        ERMMF,
        IALS,
        IALSPP,
        SAFER2,
        SAFER2CG,
        SAFER2PP,
        CVaRMF,
        MultVAE,
        Recommender,
    )
    from safecf.reporting import report
    from safecf.tuning import Tuning, tune

    load = Recommender.load
    __version__: str

__all__ = [
    "EASE",
    "ERMMF",
    "IALS",
    "IALSPP",
    "SAFER2",
    "SAFER2CG",
    "SAFER2PP",
    "CVaRMF",
    "Comparison",
    "ConvergenceWarning",
    "DivergenceError",
    "Evaluation",
    "FileFormatError",
    "Interactions",
    "ModelFitError",
    "MultVAE",
    "NotFittedError",
    "ParameterWarning",
    "Recommender",
    "SolveError",
    "Tuning",
    "__version__",
    "batch",
    "compare",
    "datasets",
    "evaluate",
    "load",
    "report",
    "split",
    "tune",
]

# Where the public names live, each importing those before it. They are imported when they are
# asked for: the command line shows its help without numpy, scipy and pyarrow, and it is able to
# catch Ctrl-C before anything is imported.
_HOMES = (
    "safecf.errors",
    "safecf.data.matrices.interactions",
    "safecf.models",
    "safecf.evaluation",
    "safecf.reporting",
    "safecf.tuning",
)

if not TYPE_CHECKING:

    def _find(name):
        from importlib import import_module  # noqa: PLC0415
        from importlib.metadata import version  # noqa: PLC0415

        if name == "__version__":
            return version("safecf")
        if name == "load":
            return _find("Recommender").load
        if name in __all__:
            for home in map(import_module, _HOMES):
                if hasattr(home, name):
                    return getattr(home, name)
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    def __getattr__(name: str) -> object:
        found = _find(name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
