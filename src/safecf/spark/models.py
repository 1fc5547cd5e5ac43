"""Models: factors as DataFrames, and what is asked of them."""

from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pyarrow as pa
from pyspark.ml import Model
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from safecf.als.loop import Epoch
from safecf.data.matrices.ids import to_arrow
from safecf.models import catalogue, stored
from safecf.models.als import ALSModel
from safecf.models.history import unpack_history
from safecf.models.popularity import resized
from safecf.spark.arrays import lists, matrix
from safecf.spark.columns import check_comparable, known_column
from safecf.spark.params import ModelArguments, ModelParams
from safecf.spark.persistence import Stored

# Columns that a dataset is joined with for a while.
USER, ITEM, X, Y = "__safecf_user", "__safecf_item", "__safecf_x", "__safecf_y"


def tables_of(local: ALSModel, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Return users and items of a fitted local model as DataFrames."""
    _, arrays = stored.pack(local)
    counts = arrays["user_counts"]
    user_ids = np.arange(len(counts)) if local.user_ids is None else local.user_ids
    users = {
        "id": to_arrow(user_ids),
        "features": lists(arrays["user_factors"]),
        "weight": arrays["user_weights"],
        "mass": arrays["user_mass"],
    }
    if (counts != 1).any():
        users["count"] = counts
    factors = arrays["item_factors"]
    item_ids = np.arange(len(factors)) if local.item_ids is None else local.item_ids
    items = {
        "id": to_arrow(item_ids),
        "features": lists(factors),
        "share": resized(local.item_popularity, len(factors)).astype(np.float64),
    }
    return spark.createDataFrame(pa.table(users)), spark.createDataFrame(pa.table(items))


class FactorModel(Model, ModelParams, Stored):
    """score_ui = x_u . y_i, with x_u the rows of `userFactors` and y_i those of `itemFactors`.

    `users` has id, features, weight w_u and mass m_u; `items` has id, features and share, that of
    the training users who have the item. `fitted` are the local model's options, and what training
    has found beside the factors.
    """

    local: ClassVar[type[ALSModel]]

    def __init__(self, users: DataFrame, items: DataFrame, fitted: dict[str, Any]) -> None:
        super().__init__()
        self.users, self.items, self.fitted = users, items, fitted

    @classmethod
    def _of(
        cls, local: ALSModel, users: DataFrame, items: DataFrame, fitted: dict[str, Any]
    ) -> Self:
        """Return a model with the local one's options."""
        return cls(users, items, {**fitted, "options": local.get_params()})

    def setParams(self, **params: Unpack[ModelArguments]) -> Self:
        """Set Params by name."""
        return self._set(**params)

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
        prediction = self.getPredictionCol()
        if prediction in dataset.columns:
            raise ValueError(
                f"there is a column {prediction!r} already; set another predictionCol, or drop it"
            )
        sides = (
            ("userCol", self.getUserCol(), self.users, USER, X),
            ("itemCol", self.getItemCol(), self.items, ITEM, Y),
        )
        joined = dataset
        for param, name, table, own, factors in sides:
            column = known_column(dataset, param, name)
            check_comparable(table, dataset, param, name)
            known = table.select(F.col("id").alias(own), F.col("features").alias(factors))
            joined = joined.join(known, column == known[own], "left")
        scores = F.coalesce(self._products(F.col(X), F.col(Y)), F.lit(float("nan")))
        found = joined.withColumn(prediction, scores.cast("float")).drop(USER, ITEM, X, Y)
        if self.getColdStartStrategy() == "drop":
            return found.dropna(subset=[prediction])
        return found

    def _products(self, x: Column, y: Column) -> Column:
        """x . y by row, summed up in float64; null where one of them is."""
        width = self.rank

        def products(x: pa.Array, y: pa.Array) -> pa.Array:
            known = pa.compute.and_(x.is_valid(), y.is_valid())
            rows = matrix(x.filter(known), width), matrix(y.filter(known), width)
            found = np.full(len(x), np.nan)
            found[known.to_numpy(zero_copy_only=False)] = np.einsum(
                "ij,ij->i", *rows, dtype=np.float64
            )
            return pa.array(found, pa.float32())

        return F.arrow_udf(products, "float")(x, y)

    def _tables(self) -> dict[str, DataFrame]:
        return {"users": self.users, "items": self.items}

    def _metadata(self) -> dict[str, Any]:
        return {"fitted": self.fitted}

    @classmethod
    def _restored(cls, metadata: dict[str, Any], read: Any) -> Self:
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
