"""Params of estimators and models: the names of pyspark's ALS, and the local models' options."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from pyspark import StorageLevel
from pyspark.ml.param import Param, Params, TypeConverters

from safecf.checks import check_integer
from safecf.defaults import AUTO
from safecf.errors import choose, shown
from safecf.models.options import LARGEST_SEED

T = TypeVar("T")
P = TypeVar("P", bound=Params)

COLD_START = ("nan", "drop")
BROADCAST = (AUTO, "always", "never")

# By the name of a local model's option: that of the Param, where it is not the same in camel case.
ALS_NAMES = {
    "factors": "rank",
    "iterations": "maxIter",
    "regularization": "regParam",
    "random_state": "seed",
}
# Options of local models that Spark decides.
OWN_BY_SPARK = ("num_threads", "backend", "device")


def param_name(option: str) -> str:
    """Return the name of the Param of a local model's option.

    >>> param_name("factors"), param_name("unobserved_weight")
    ('rank', 'unobservedWeight')
    """
    first, *others = option.split("_")
    return ALS_NAMES.get(option, first + "".join(map(str.capitalize, others)))


class Getter(Generic[T]):
    """`getX()` of a Param: its value, or else its default."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Params, kind: type) -> Callable[[], T]:
        return partial(self._get, owner)

    def _get(self, owner: Params) -> T:
        found: T = owner.getOrDefault(self.name)
        return found


class Setter(Generic[T]):
    """`setX(value)` of a Param; returns the object, so that calls can be chained."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: P, kind: type) -> Callable[[T], P]:
        return partial(self._set, owner)

    def _set(self, owner: P, value: T) -> P:
        return owner._set(**{self.name: value})


def declare(
    name: str, doc: str, converter: Callable[[Any], T]
) -> tuple[Param[T], Getter[T], Setter[T]]:
    """Return a Param with its getter and its setter."""
    param = Param(Params._dummy(), name, doc, typeConverter=converter)
    return param, Getter(name), Setter(name)


def set_named(owner: P, values: Mapping[str, Any]) -> P:
    """Set Params by name; raise TypeError, with the closest name, if one is unknown."""
    known = {param.name: param for param in owner.params}
    try:
        for name in values:
            choose(f"argument of {type(owner).__name__}", name, known)
    except ValueError as problem:
        raise TypeError(str(problem)) from None
    return owner._set(**values)


def whole(name: str, low: int, default: int, also: int | None = None) -> Callable[[Any], int]:
    """Return a converter to whole numbers from `low` on, or `also` one below."""

    def convert(value: Any) -> int:
        number = TypeConverters.toInt(value)
        return number if number == also else check_integer(name, number, low, default)

    return convert


def one_of(name: str, *known: str) -> Callable[[Any], str]:
    """Return a converter to one of the known texts, whatever the case is."""
    table = {text.lower(): text for text in known}

    def convert(value: Any) -> str:
        text = TypeConverters.toString(value)
        return choose(name, table.get(text.lower(), text), {key: key for key in known})

    return convert


def only(name: str, wanted: bool, reason: str) -> Callable[[Any], bool]:
    """Return a converter that refuses the other truth value."""

    def convert(value: Any) -> bool:
        if TypeConverters.toBoolean(value) != wanted:
            raise ValueError(f"{name}={value}: {reason}; try {name}={wanted}, or leave it out")
        return wanted

    return convert


def optional(convert: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return a converter that keeps None."""
    return lambda value: None if value is None else convert(value)


def number_or_auto(value: Any) -> float | str:
    """Keep "auto" as it is, and convert numbers to float."""
    if isinstance(value, str):
        if value != AUTO:
            raise TypeError(f"{shown(value)} is neither a number nor {AUTO!r}")
        return value
    return TypeConverters.toFloat(value)


def _seed(value: Any) -> int:
    number = TypeConverters.toInt(value)
    if not -LARGEST_SEED <= number < LARGEST_SEED:
        raise ValueError(
            f"seed={number} has to be from -2**63 to 2**63 - 1; try seed={number % LARGEST_SEED}"
        )
    return number


def _positive(value: Any) -> float:
    number = TypeConverters.toFloat(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"alpha={number:g} has to be a number above 0; try alpha=1.0")
    return number


STORAGE_LEVELS = tuple(
    name for name, level in vars(StorageLevel).items() if isinstance(level, StorageLevel)
)
EXPLICIT = "ratings are confidences here, and not predicted; for those, see pyspark's ALS"
IDS = "numbers, texts, dates, timestamps, booleans, binary or day-time intervals"
SIGNED = "factors of both signs are needed"
to_int, to_float, to_string = (
    TypeConverters.toInt,
    TypeConverters.toFloat,
    TypeConverters.toString,
)


class ModelParams(Params):
    """Params of estimators and models alike."""

    userCol, getUserCol, setUserCol = declare(
        "userCol", "column of the users' ids: " + IDS, to_string
    )
    itemCol, getItemCol, setItemCol = declare(
        "itemCol", "column of the items' ids: " + IDS, to_string
    )
    ratingCol, getRatingCol, setRatingCol = declare(
        "ratingCol", 'column of the ratings r_ui >= 0; "": every row counts 1', to_string
    )
    alpha, getAlpha, setAlpha = declare(
        "alpha",
        "c_ui = alpha r_ui, the confidence of an observed pair. It cancels out where a user's loss "
        "is divided by sum_i c_ui, and where unobservedWeight is 'auto': set unobservedWeight",
        _positive,
    )
    predictionCol, getPredictionCol, setPredictionCol = declare(
        "predictionCol", "column of the predictions x_u.y_i", to_string
    )
    coldStartStrategy, getColdStartStrategy, setColdStartStrategy = declare(
        "coldStartStrategy",
        "what transform does with unknown users and items: 'nan' predicts NaN, 'drop' drops rows",
        one_of("coldStartStrategy", *COLD_START),
    )
    blockSize, getBlockSize, setBlockSize = declare(
        "blockSize",
        "number of users or items in a block of factors, in recommendForAllUsers and the like",
        whole("blockSize", 1, 4096),
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            userCol="user",
            itemCol="item",
            ratingCol="rating",
            alpha=1.0,
            predictionCol="prediction",
            coldStartStrategy="nan",
            blockSize=4096,
        )


class TrainingParams(ModelParams):
    """Params of all estimators; see `safecf.models.als.ALSModel` for what they mean."""

    rank, getRank, setRank = declare("rank", "d, the length of the factors", to_int)
    maxIter, getMaxIter, setMaxIter = declare("maxIter", "number of epochs", to_int)
    regParam, getRegParam, setRegParam = declare(
        "regParam", 'lambda, the weight of the ridge; "auto": found from the data', number_or_auto
    )
    unobservedWeight, getUnobservedWeight, setUnobservedWeight = declare(
        "unobservedWeight",
        "b, the weight of unobserved pairs: beside c_ui = alpha r_ui in IALS, where ALS has 1, and "
        'beside c_ui / sum_i c_ui in ERMMF and SAFER2; "auto": found from the data',
        number_or_auto,
    )
    initStd, getInitStd, setInitStd = declare(
        "initStd", "sigma; the factors start at N(0, sigma^2 / d)", to_float
    )
    seed, getSeed, setSeed = declare(
        "seed",
        "what all chance comes from, any 64-bit integer; None: another one in every fit",
        optional(_seed),
    )
    solver, getSolver, setSolver = declare(
        "solver", "how rows are solved: 'exact', 'cg', 'spectral-cg' or 'auto'", to_string
    )
    tolerance, getTolerance, setTolerance = declare(
        "tolerance", "relative residual at which the iterative solvers stop", to_float
    )
    implicitPrefs, getImplicitPrefs, setImplicitPrefs = declare(
        "implicitPrefs",
        "always True: ratings are confidences",
        only("implicitPrefs", True, EXPLICIT),
    )
    nonnegative, getNonnegative, setNonnegative = declare(
        "nonnegative", "always False: factors have both signs", only("nonnegative", False, SIGNED)
    )
    numUserBlocks, getNumUserBlocks, setNumUserBlocks = declare(
        "numUserBlocks", "number of blocks of users", whole("numUserBlocks", 1, 10)
    )
    numItemBlocks, getNumItemBlocks, setNumItemBlocks = declare(
        "numItemBlocks", "number of blocks of items", whole("numItemBlocks", 1, 10)
    )
    checkpointInterval, getCheckpointInterval, setCheckpointInterval = declare(
        "checkpointInterval",
        "number of epochs between checkpoints; -1: none",
        whole("checkpointInterval", 1, 10, also=-1),
    )
    checkpointDir, getCheckpointDir, setCheckpointDir = declare(
        "checkpointDir",
        "folder that fit writes checkpoints to and resumes from; None: nothing to resume from",
        optional(to_string),
    )
    intermediateStorageLevel, getIntermediateStorageLevel, setIntermediateStorageLevel = declare(
        "intermediateStorageLevel",
        "StorageLevel of what an epoch leaves to the next one",
        one_of("intermediateStorageLevel", *(name for name in STORAGE_LEVELS if name != "NONE")),
    )
    finalStorageLevel, getFinalStorageLevel, setFinalStorageLevel = declare(
        "finalStorageLevel",
        "StorageLevel of the model's factors",
        one_of("finalStorageLevel", *STORAGE_LEVELS),
    )
    broadcast, getBroadcast, setBroadcast = declare(
        "broadcast",
        "whose factors the driver holds and sends with the tasks: 'auto' those of sides up to "
        "64 MB, 'always' those of the smaller side in any case, 'never' none",
        one_of("broadcast", *BROADCAST),
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            implicitPrefs=True,
            nonnegative=False,
            numUserBlocks=10,
            numItemBlocks=10,
            checkpointInterval=10,
            checkpointDir=None,
            intermediateStorageLevel="MEMORY_AND_DISK",
            finalStorageLevel="MEMORY_AND_DISK",
            broadcast=AUTO,
        )

    def setNumBlocks(self: P, value: int) -> P:
        """Set `numUserBlocks` and `numItemBlocks` to the same number."""
        return self._set(numUserBlocks=value, numItemBlocks=value)


class PlainLossParams(TrainingParams):
    """Params of a loss that is a sum over the history."""

    ridgeExponent, getRidgeExponent, setRidgeExponent = declare(
        "ridgeExponent", "nu; ridge_u = lambda (|V_u| + b |V|)^nu", to_float
    )


class NormalisedLossParams(TrainingParams):
    """Params of a loss that is a mean over the history."""

    tail, getTail, setTail = declare(
        "tail", "the share of worst-off users that is protected", to_float
    )
    normalisation, getNormalisation, setNormalisation = declare(
        "normalisation", "rho; a user's loss is divided by |V_u|^rho", to_float
    )
    ridgeInRisk, getRidgeInRisk, setRidgeInRisk = declare(
        "ridgeInRisk",
        "whether the users' ridge is part of the loss that the risk measures",
        TypeConverters.toBoolean,
    )


class SmoothedTailParams(NormalisedLossParams):
    """Params of the smoothed CVaR."""

    kernel, getKernel, setKernel = declare("kernel", "K, the smoothing kernel", to_string)
    bandwidth, getBandwidth, setBandwidth = declare(
        "bandwidth", 'h; "auto": 1.5 standard deviations of the losses', number_or_auto
    )
    quantileSteps, getQuantileSteps, setQuantileSteps = declare(
        "quantileSteps", "most Newton steps for xi in an epoch", to_int
    )
    quantileSample, getQuantileSample, setQuantileSample = declare(
        "quantileSample", "share of the users that xi is found on", to_float
    )
