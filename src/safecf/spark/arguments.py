"""Keyword arguments of estimators, models and the evaluator: the names of their Params."""

from typing import TypedDict


class ModelArguments(TypedDict, total=False):
    """Arguments of a model's `setParams`."""

    userCol: str
    itemCol: str
    ratingCol: str
    alpha: float
    predictionCol: str
    coldStartStrategy: str
    blockSize: int


class Arguments(ModelArguments, total=False):
    """Arguments of every estimator."""

    rank: int
    maxIter: int
    regParam: float | str
    unobservedWeight: float | str
    initStd: float
    seed: int | None
    solver: str
    tolerance: float
    implicitPrefs: bool
    nonnegative: bool
    numUserBlocks: int
    numItemBlocks: int
    checkpointInterval: int
    checkpointDir: str | None
    intermediateStorageLevel: str
    finalStorageLevel: str
    broadcast: str


class IALSArguments(Arguments, total=False):
    """Arguments of `IALS`."""

    ridgeExponent: float


class ERMMFArguments(Arguments, total=False):
    """Arguments of `ERMMF`."""

    tail: float
    normalisation: float
    ridgeInRisk: bool


class SAFER2Arguments(ERMMFArguments, total=False):
    """Arguments of `SAFER2`."""

    kernel: str
    bandwidth: float | str
    quantileSteps: int
    quantileSample: float


class EvaluatorArguments(TypedDict, total=False):
    """Arguments of `TailEvaluator`."""

    userCol: str
    labelCol: str
    predictionCol: str
    metricName: str
    tail: float
    k: int
