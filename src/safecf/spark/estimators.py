"""Estimators: `IALS`, `ERMMF` and `SAFER2`, to be put where pyspark's ALS stands."""

from typing import Any, ClassVar, Self, Unpack

from pyspark import StorageLevel
from pyspark.ml import Estimator
from pyspark.sql import DataFrame

from safecf.models import catalogue
from safecf.models.als import ALSModel
from safecf.models.options import LARGEST_SEED, parameters, rules
from safecf.spark import training
from safecf.spark.arguments import ERMMFArguments, IALSArguments, SAFER2Arguments
from safecf.spark.columns import interactions
from safecf.spark.models import ERMMFModel, FactorModel, IALSModel, SAFER2Model
from safecf.spark.params import (
    OWN_BY_SPARK,
    NormalisedLossParams,
    PlainLossParams,
    SmoothedTailParams,
    TrainingParams,
    param_name,
    set_named,
)
from safecf.spark.persistence import Stored


class FactorEstimator(Estimator[Any], TrainingParams, Stored):
    """What all estimators share; `local` is the class of the local model."""

    local: ClassVar[type[ALSModel]]
    model: ClassVar[type[FactorModel]]

    def __init__(self) -> None:
        super().__init__()
        defaults = parameters(self.local)
        self._setDefault(
            **{param: defaults[option].default for option, param in self._options().items()}
        )
        self._setDefault(seed=0)  # a fit gives the same result again, as ALS's does

    @classmethod
    def _options(cls) -> dict[str, str]:
        """Return the Param of every option of the local model."""
        names = (name for name in parameters(cls.local) if name not in OWN_BY_SPARK)
        return {name: param_name(name) for name in names}

    def _unfitted(self) -> ALSModel:
        """Return the local model with these options, checked and not fitted.

        >>> SAFER2(rank=64, tail=0.1)._unfitted()
        SAFER2(factors=64, random_state=0, tail=0.1)
        """
        options = {name: self.getOrDefault(param) for name, param in self._options().items()}
        allowed, defaults = rules(self.local), parameters(self.local)
        if options["random_state"] is not None:
            options["random_state"] %= LARGEST_SEED  # ALS's seeds may be negative
        for name, value in options.items():
            allowed[name](param_name(name), value, defaults[name].default)
        return self.local(**options)

    def _fit(self, dataset: DataFrame) -> FactorModel:
        if dataset.isStreaming:
            raise ValueError(
                "a stream cannot be fitted, as all of it has to be there: fit in foreachBatch, or "
                "fold the users of a batch in by the model's foldIn"
            )
        local = self._unfitted()
        ratings = interactions(
            dataset, self.getUserCol(), self.getItemCol(), self.getRatingCol(), self.getAlpha()
        )
        options = training.Options(
            user_blocks=self.getNumUserBlocks(),
            item_blocks=self.getNumItemBlocks(),
            storage_level=getattr(StorageLevel, self.getIntermediateStorageLevel()),
            final_storage_level=getattr(StorageLevel, self.getFinalStorageLevel()),
            checkpoint_interval=self.getCheckpointInterval(),
            checkpoint_dir=self.getCheckpointDir(),
            cached=dataset.storageLevel.useMemory or dataset.storageLevel.useDisk,
            broadcast=self.getBroadcast(),
        )
        trained = training.train(local, ratings, options)
        model = self.model._of(local, trained.users, trained.items, trained.fitted)
        return self._copyValues(model._resetUid(self.uid))


class IALS(FactorEstimator, PlainLossParams):
    """Implicit ALS: everybody counts by the length of their history; see `safecf.IALS`.

    >>> IALS(rank=64, userCol="user", itemCol="movie", ratingCol="").fit(ratings)
    """

    local = catalogue.IALS
    model = IALSModel

    def __init__(self, **params: Unpack[IALSArguments]) -> None:
        super().__init__()
        set_named(self, params)

    def setParams(self, **params: Unpack[IALSArguments]) -> Self:
        """Set Params by name."""
        return set_named(self, params)


class ERMMF(FactorEstimator, NormalisedLossParams):
    """ERM-MF: every user counts the same; see `safecf.ERMMF`.

    >>> ERMMF(rank=64, seed=0).fit(ratings)
    """

    local = catalogue.ERMMF
    model = ERMMFModel

    def __init__(self, **params: Unpack[ERMMFArguments]) -> None:
        super().__init__()
        set_named(self, params)

    def setParams(self, **params: Unpack[ERMMFArguments]) -> Self:
        """Set Params by name."""
        return set_named(self, params)


class SAFER2(FactorEstimator, SmoothedTailParams):
    """SAFER2: the users with the worst losses count most; see `safecf.SAFER2`.

        c_ui = alpha r_ui ,   loss_u = 1/(2 m_u) sum_i c_ui (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u

    m_u = sum_i c_ui, so that `alpha` cancels out: `unobservedWeight` b says what unobserved pairs
    weigh, where a user's observed ones weigh 1 in all. Params have the names of pyspark's ALS. The
    local model's options have theirs in camel case, and its defaults, `rank` and `maxIter`
    included; "auto" fits `regParam`, `unobservedWeight` and `bandwidth` to the data. Rows of
    rating 0 count nowhere. Several rows of one user and item add up.

    >>> from safecf.spark import SAFER2
    >>> als = SAFER2(rank=64, tail=0.3, userCol="user", itemCol="movie", seed=0)
    >>> als.fit(ratings).recommendForAllUsers(10)
    """

    local = catalogue.SAFER2
    model = SAFER2Model

    def __init__(self, **params: Unpack[SAFER2Arguments]) -> None:
        super().__init__()
        set_named(self, params)

    def setParams(self, **params: Unpack[SAFER2Arguments]) -> Self:
        """Set Params by name."""
        return set_named(self, params)
