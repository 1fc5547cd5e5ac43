"""Columns of the users' DataFrames: found by name, checked by type."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StringType

from safecf.errors import choose


def known_column(dataset: DataFrame, param: str, name: str) -> Column:
    """Return the column that a Param names; raise with the closest name if there is none."""
    choose(param, name, dict.fromkeys(dataset.columns))
    return dataset[quoted(name)]


def quoted(name: str) -> str:
    """Return a name in which a dot is only a dot."""
    return "`" + name.replace("`", "``") + "`"


def confidences(dataset: DataFrame, rating: str, alpha: float) -> Column:
    """c_ui = alpha r_ui, and r_ui = 1 where no column of ratings is named."""
    if not rating:
        return F.lit(alpha).cast("float")
    column = known_column(dataset, "ratingCol", rating)
    kind = dataset.schema[rating].dataType
    if not isinstance(kind, NumericType):
        raise TypeError(
            f"the column ratingCol={rating!r} is of type {kind.simpleString()}; cast it to float, "
            'or set ratingCol="" if every row counts the same'
        )
    return (column.cast("double") * alpha).cast("float")


def interactions(dataset: DataFrame, user: str, item: str, rating: str, alpha: float) -> DataFrame:
    """Return user, item and confidence c_ui = alpha r_ui of the rows whose rating is not 0."""
    found = dataset.select(
        known_column(dataset, "userCol", user).alias("user"),
        known_column(dataset, "itemCol", item).alias("item"),
        confidences(dataset, rating, alpha).alias("confidence"),
    )
    return found.where(~F.col("confidence").eqNullSafe(F.lit(0.0).cast("float")))


def check_comparable(known: DataFrame, dataset: DataFrame, param: str, name: str) -> None:
    """Raise if ids are texts on one side, and something else on the other."""
    ours, theirs = known.schema["id"].dataType, dataset.schema[name].dataType
    if isinstance(ours, StringType) != isinstance(theirs, StringType):
        raise TypeError(
            f"the column {param}={name!r} is of type {theirs.simpleString()}, while the model "
            f"was trained on {ours.simpleString()}; cast it"
        )
