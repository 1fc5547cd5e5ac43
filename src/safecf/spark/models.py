"""Models: factors as DataFrames, and what is asked of them."""

from collections.abc import Callable
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.ml import Model
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, DoubleType, FloatType

from safecf.als.loop import Epoch
from safecf.checks import check_integer
from safecf.models import catalogue
from safecf.models.als import ALSModel
from safecf.models.history import unpack_history
from safecf.models.json_values import plain, revived
from safecf.spark.arguments import ModelArguments
from safecf.spark.arrays import matrix
from safecf.spark.columns import (
    check_comparable,
    check_different,
    checked,
    folding_case,
    id_column,
    interactions,
    known_column,
    known_type,
    quoted,
)
from safecf.spark.folding import Fold, gram_of
from safecf.spark.local import fitted_of, local_of, tables_of
from safecf.spark.params import ModelParams, set_named
from safecf.spark.persistence import Stored
from safecf.spark.recommending import top_k

# Columns that a dataset is joined with for a while.
USER, ITEM, X, Y = "__safecf_user", "__safecf_item", "__safecf_x", "__safecf_y"


class FactorModel(Model, ModelParams, Stored):
    """score_ui = x_u . y_i, with x_u the rows of `userFactors` and y_i those of `itemFactors`.

    `users` has id, features, weight w_u and mass m_u; `items` has id, features and share, that of
    the training users who have the item. `fitted` are the local model's options, and what training
    has found beside the factors.
    """

    local: ClassVar[type[ALSModel]]

    def __init__(self, users: DataFrame, items: DataFrame, fitted: dict[str, Any]) -> None:
        super().__init__()
        self.users, self.items = users, items
        self.fitted = revived(plain(fitted))
        self._gram: NDArray[np.float64] | None = None  # Y'Y, once it was needed

    @classmethod
    def _of(
        cls, local: ALSModel, users: DataFrame, items: DataFrame, fitted: dict[str, Any]
    ) -> Self:
        """Return a model with the local one's options."""
        return cls(users, items, {**fitted, "options": local.get_params()})

    def setParams(self, **params: Unpack[ModelArguments]) -> Self:
        """Set Params by name."""
        return set_named(self, params)

    @property
    def rank(self) -> int:
        """d, the length of the factors."""
        return int(self.fitted["options"]["factors"])

    @property
    def userFactors(self) -> DataFrame:
        """The users' factors: id, features."""
        return self.users.select("id", "features")

    @property
    def itemFactors(self) -> DataFrame:
        """The items' factors: id, features."""
        return self.items.select("id", "features")

    def unpersist(self, blocking: bool = False) -> Self:
        """Let go of the factors that `finalStorageLevel` keeps; whoever needs them computes them.

        What Spark caches is not garbage-collected. Call it on the models of a search that are not
        needed any more, or once a model is saved: one that is loaded reads files instead.

        >>> model.write().overwrite().save(path)
        >>> model.unpersist()
        """
        for frame in (self.users, self.items):
            frame.unpersist(blocking)
        return self

    @property
    def history(self) -> list[Epoch]:
        """One `Epoch` per epoch."""
        return unpack_history(self.fitted, Epoch)

    @property
    def resolved(self) -> dict[str, float]:
        """The values that training has found for "auto", by the names of the local options."""
        return dict(self.fitted["resolved"])

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """Add x_u . y_i, NaN where the user or the item is unknown; or drop those rows."""
        prediction, fold = self.getPredictionCol(), folding_case(dataset)
        if fold(prediction) in map(fold, dataset.columns):
            raise ValueError(
                f"there is a column {prediction!r} already; set another predictionCol, or drop it"
            )
        check_different(dataset, userCol=self.getUserCol(), itemCol=self.getItemCol())
        sides = (
            ("userCol", self.getUserCol(), self.users, USER, X),
            ("itemCol", self.getItemCol(), self.items, ITEM, Y),
        )
        joined = dataset
        for param, name, table, own, factors in sides:
            column = id_column(dataset, param, name)
            check_comparable(table, dataset, param, name)
            known = table.select(F.col("id").alias(own), F.col("features").alias(factors))
            joined = joined.join(known, column == known[own], "left")
        scores = F.coalesce(self._products(F.col(X), F.col(Y)), F.lit(float("nan")))
        found = joined.withColumn(prediction, scores.cast("float")).drop(USER, ITEM, X, Y)
        if self.getColdStartStrategy() == "drop":
            return found.dropna(subset=[quoted(prediction)])
        return found

    def _products(self, x: Column, y: Column) -> Column:
        """Products x . y by row, summed up in float64; null where one of them is."""
        width = self.rank

        def products(x: pa.Array, y: pa.Array) -> pa.Array:
            known = pc.and_(x.is_valid(), y.is_valid())
            rows = matrix(x.filter(known), width), matrix(y.filter(known), width)
            found = np.full(len(x), np.nan)
            found[known.to_numpy(zero_copy_only=False)] = np.einsum(
                "ij,ij->i", *rows, dtype=np.float64
            )
            return pa.array(found, pa.float32())

        udf: Any = arrow_udf  # its stub asks for an argument that type hints have replaced
        found: Column = udf(products, "float")(x, y)
        return found

    def recommendForAllUsers(self, numItems: int) -> DataFrame:
        """Return the best items of every user: userCol, recommendations of (itemCol, rating).

        Scores are x_u . y_i, and ties rank by the items' ids.
        """
        return self._top_k(self.users, "user", numItems)

    def recommendForAllItems(self, numUsers: int) -> DataFrame:
        """Return the best users of every item: itemCol, recommendations of (userCol, rating)."""
        return self._top_k(self.items, "item", numUsers)

    def recommendForUserSubset(self, dataset: DataFrame, numItems: int) -> DataFrame:
        """Return the best items of the users in `dataset`'s userCol, once each if known."""
        return self._top_k(self._among(self.users, dataset, "userCol"), "user", numItems)

    def recommendForItemSubset(self, dataset: DataFrame, numUsers: int) -> DataFrame:
        """Return the best users of the items in `dataset`'s itemCol, once each if known."""
        return self._top_k(self._among(self.items, dataset, "itemCol"), "item", numUsers)

    def recommendForFactors(self, userFactors: DataFrame, numItems: int) -> DataFrame:
        """Return the best items of users that are given by id and features, as `foldIn` does.

        >>> model.recommendForFactors(model.foldIn(ratings_of_new_users), 10)
        """
        found = known_column(userFactors, "column of userFactors", "features")
        kind = known_type(userFactors, "column of userFactors", "features")
        if not (
            isinstance(kind, ArrayType) and isinstance(kind.elementType, FloatType | DoubleType)
        ):
            raise TypeError(
                f"the column features is of type {kind.simpleString()}, not array<float>; take "
                "those of foldIn, or of userFactors"
            )
        finite = F.forall(found, lambda each: F.coalesce(F.abs(each) < float("inf"), F.lit(False)))
        features = checked(
            found,
            (F.size(found) == self.rank) & finite,
            f"recommendForFactors: a user's features are not {self.rank} finite numbers, as the "
            "model's rank says; take those of foldIn, or of userFactors",
        )
        users = known_column(userFactors, "column of userFactors", "id").alias("id")
        queries = userFactors.select(users, features.alias("features"))
        return self._top_k(queries, "user", numItems)

    def _top_k(self, queries: DataFrame, side: str, k: int) -> DataFrame:
        names, others = (self.getUserCol(), self.getItemCol()), self.items
        count = "numItems"
        if side == "item":
            names, others, count = names[::-1], self.users, "numUsers"
        check_integer(count, k, 1, 10)
        fold = folding_case(queries)
        for name, taken in zip(names, ("recommendations", "rating"), strict=True):
            if fold(name) == taken:
                raise ValueError(
                    f"the result would have two columns {name!r}: rename the model's userCol or "
                    "itemCol that is called so"
                )
        return top_k(queries, others, int(k), self.getBlockSize(), self.rank, names)

    def _among(self, table: DataFrame, dataset: DataFrame, param: str) -> DataFrame:
        """Return the rows of a table whose ids are in the dataset."""
        name = self.getOrDefault(param)
        wanted = dataset.select(id_column(dataset, param, name).alias(USER)).distinct()
        check_comparable(table, dataset, param, name)
        return table.join(wanted, table["id"] == wanted[USER], "left_semi")

    def foldIn(self, dataset: DataFrame) -> DataFrame:
        """Return id and features of the dataset's users, known or new, from these rows alone.

        x_u = argmin loss_u + ridge_u/2 |x_u|^2, exactly, as `fold_in` of the local model. Rows of
        items that the model does not know, and rows of rating 0, are ignored; users who have no
        others get no row. A rating that is negative or missing is an error of the job that computes
        the result. `recommendForFactors` takes it. Nothing is stored.

        >>> model.foldIn(ratings_of_new_users).show()
        """
        ratings = interactions(
            dataset, self.getUserCol(), self.getItemCol(), self.getRatingCol(), self.getAlpha()
        )
        check_comparable(self.items, dataset, "itemCol", self.getItemCol())
        if self._gram is None:
            self._gram = gram_of(self.items, self.rank)
        unfitted = self.local(**self.fitted["options"])
        loss, ridge, _, _ = unfitted.settled(self.resolved).parts()
        fold = Fold(loss, ridge, self._gram, int(self.fitted["num_items"]), self.rank)
        confidence = F.col("confidence")
        good = F.col("user").isNotNull() & (confidence > 0) & (confidence < float("inf"))
        problem = (
            "foldIn: a user's id or rating is missing, or a rating is negative, or beyond float32"
        )
        proper = checked(confidence, good, f"{problem}; drop such rows")
        return fold(ratings.withColumn("confidence", proper), self.items)

    @classmethod
    def from_local(cls, model: ALSModel, spark: SparkSession) -> Self:
        """Return a fitted local model as one of Spark; rows without ids get their numbers.

        >>> SAFER2Model.from_local(safecf.load("model.safetensors"), spark)
        """
        if type(model) is not cls.local:
            kind = type(model).__name__
            raise TypeError(f"this is a {kind}, not a {cls.local.__name__}; try {kind}Model")
        return cls(*tables_of(model, spark), fitted_of(model))

    def to_local(self) -> ALSModel:
        """Return the fitted local model, with all factors in the memory of this process.

        Its rows are in the order of the ids, which have to be integers or strings.

        >>> model.to_local().save("model.safetensors")
        """
        return local_of(self.local, self.users, self.items, self.fitted)

    def _tables(self) -> dict[str, DataFrame]:
        return {"users": self.users, "items": self.items}

    def _metadata(self) -> dict[str, Any]:
        return {"fitted": self.fitted}

    @classmethod
    def _restored(cls, metadata: dict[str, Any], read: Callable[[str], DataFrame]) -> Self:
        return cls(read("users"), read("items"), metadata["fitted"])


class IALSModel(FactorModel):
    """Model that `IALS` has fitted."""

    local = catalogue.IALS


class ERMMFModel(FactorModel):
    """Model that `ERMMF` has fitted."""

    local = catalogue.ERMMF


class SAFER2Model(FactorModel):
    """Model that `SAFER2` has fitted."""

    local = catalogue.SAFER2
