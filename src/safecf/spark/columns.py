"""Columns of the users' DataFrames: found by name, as Spark compares names, and checked by type."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from safecf.errors import choose
from safecf.spark.params import IDS

# What ids can be; those of one kind compare with each other without rounding.
ID_KINDS: tuple[type[DataType], ...] = (
    IntegralType,
    DecimalType,
    FractionalType,
    StringType,
    DateType,
    TimestampType,
    TimestampNTZType,
    BooleanType,
    BinaryType,
    DayTimeIntervalType,
)


def folding_case(dataset: DataFrame) -> Callable[[str], str]:
    """Return what makes names equal that Spark takes for the same."""
    sensitive = str(dataset.sparkSession.conf.get("spark.sql.caseSensitive"))
    return str if sensitive.lower() == "true" else str.lower


def known_name(dataset: DataFrame, param: str, name: str) -> str:
    """Return a column's own name; raise if there is none, with the closest, or more than one."""
    fold = folding_case(dataset)
    found = [column for column in dataset.columns if fold(column) == fold(name)]
    if len(found) > 1:
        names = ", ".join(map(repr, found))
        raise ValueError(f"{param}={name!r} may be any of the columns {names}; rename or drop some")
    return found[0] if found else choose(param, name, {each: each for each in dataset.columns})


def known_column(dataset: DataFrame, param: str, name: str) -> Column:
    """Return the column that a Param names; raise with the closest name if there is none."""
    return dataset[quoted(known_name(dataset, param, name))]


def known_type(dataset: DataFrame, param: str, name: str) -> DataType:
    """Return the type of the column that a Param names."""
    return dataset.schema[known_name(dataset, param, name)].dataType


def quoted(name: str) -> str:
    """Return a name in which a dot is only a dot."""
    return "`" + name.replace("`", "``") + "`"


def check_different(dataset: DataFrame, **names: str) -> None:
    """Raise if two Params name the same column."""
    fold, seen = folding_case(dataset), dict[str, str]()
    for param, name in names.items():
        other = seen.setdefault(fold(name), param)
        if other != param:
            raise ValueError(
                f"{other} and {param} name the same column {name!r}; set one of them to another"
            )


def id_column(dataset: DataFrame, param: str, name: str) -> Column:
    """Return a column of ids; raise if they cannot be sorted and looked up."""
    kind = known_type(dataset, param, name)
    if id_kind(kind) is None:
        raise TypeError(
            f"the column {param}={name!r} is of type {kind.simpleString()}; ids can be {IDS}: "
            "cast it, or use to_json"
        )
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        raise TypeError(
            f"the column {param}={name!r} has the collation {kind.collation}; ids are compared "
            "byte by byte: use lower() or the like, and collate(column, 'UTF8_BINARY')"
        )
    column = known_column(dataset, param, name)
    if isinstance(kind, DoubleType | FloatType):
        return F.when(~F.isnan(column), column)  # NaN is no id
    return column


def id_kind(kind: DataType) -> type[DataType] | None:
    """Return the types that ids of this type compare with, None if it is none of ids."""
    return next((each for each in ID_KINDS if isinstance(kind, each)), None)


def confidences(dataset: DataFrame, rating: str, alpha: float) -> Column:
    """c_ui = alpha r_ui, and r_ui = 1 where no column of ratings is named."""
    if not rating:
        return F.lit(alpha)
    kind = known_type(dataset, "ratingCol", rating)
    if not isinstance(kind, NumericType):
        raise TypeError(
            f"the column ratingCol={rating!r} is of type {kind.simpleString()}; cast it to float, "
            'or set ratingCol="" if every row counts the same'
        )
    return known_column(dataset, "ratingCol", rating).cast("double") * alpha


def interactions(dataset: DataFrame, user: str, item: str, rating: str, alpha: float) -> DataFrame:
    """Return user, item and confidence c_ui = alpha r_ui of the rows whose rating is not 0."""
    check_different(dataset, userCol=user, itemCol=item, ratingCol=rating)
    confidence = confidences(dataset, rating, alpha)
    return dataset.where(~confidence.eqNullSafe(F.lit(0.0))).select(
        id_column(dataset, "userCol", user).alias("user"),
        id_column(dataset, "itemCol", item).alias("item"),
        confidence.cast("float").alias("confidence"),
    )


def checked(column: Column, good: Column, message: str) -> Column:
    """Return the column; the job that computes it raises the message where a row is not good."""
    return F.when(good, column).otherwise(F.raise_error(F.lit(message)))


def check_comparable(known: DataFrame, dataset: DataFrame, param: str, name: str) -> None:
    """Raise if a column's ids are of another kind than those that the model knows."""
    ours, theirs = known.schema["id"].dataType, known_type(dataset, param, name)
    if id_kind(ours) != id_kind(theirs):
        raise TypeError(
            f"the column {param}={name!r} is of type {theirs.simpleString()}, while the model "
            f"was trained on {ours.simpleString()}; cast it"
        )
