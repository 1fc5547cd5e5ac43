"""Local models to DataFrames, and back; what DataFrames hold is validated as files are."""

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from safecf.data.matrices.ids import IdArray, to_arrow, to_numpy
from safecf.models import files, stored
from safecf.models.als import ALSModel
from safecf.models.popularity import NAME, resized
from safecf.spark.arrays import Floats, lists, matrix

# Rows of factors in one piece of a column.
ROWS = 2**16


def tables_of(local: ALSModel, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Return users and items of a fitted local model as DataFrames."""
    _, arrays = stored.pack(local)
    counts, factors = arrays["user_counts"], arrays["item_factors"]
    users = {
        "id": _ids("user_ids", local.user_ids, len(counts)),
        "features": _features(arrays["user_factors"]),
        "weight": arrays["user_weights"],
        "mass": arrays["user_mass"],
    }
    if (counts != 1).any():
        users["count"] = counts
    items = {
        "id": _ids("item_ids", local.item_ids, len(factors)),
        "features": _features(factors),
        "share": resized(local.item_popularity, len(factors)).astype(np.float64),
    }
    return spark.createDataFrame(pa.table(users)), spark.createDataFrame(pa.table(items))


def fitted_of(local: ALSModel) -> dict[str, Any]:
    """Return what training has found beside the factors, and the options."""
    fitted, _ = stored.pack(local)
    options = local.get_params()
    if not isinstance(options["random_state"], int | np.integer | None):
        options["random_state"] = fitted["seed"]
    return {**fitted, "options": options}


def local_of(
    kind: type[ALSModel], users: DataFrame, items: DataFrame, fitted: dict[str, Any]
) -> ALSModel:
    """Return the fitted local model, rows in the order of the ids."""
    local = kind(**fitted["options"])
    side = {"user": _collected(users), "item": _collected(items)}
    ids = {name: _checked(name, table["id"]) for name, table in side.items()}
    factors = {name: _matrix(table["features"], int(local.factors)) for name, table in side.items()}
    people = side["user"]
    arrays: files.Arrays = {
        "user_factors": factors["user"],
        "item_factors": factors["item"],
        "user_weights": people["weight"].to_numpy(),
        "user_mass": people["mass"].to_numpy(),
        "user_counts": _counts(people),
        NAME: side["item"]["share"].to_numpy().astype(np.float32),
        **files.pack_ids("user_ids", ids["user"]),
        **files.pack_ids("item_ids", ids["item"]),
    }
    shape = [len(table["id"]) for table in side.values()]
    stored.unpack(local, {"shape": shape, **fitted}, arrays)
    return local


def _ids(name: str, ids: IdArray | None, rows: int) -> pa.Array:
    """Return the ids of all rows, the rows' numbers if there are none."""
    if ids is not None and len(ids) != rows:
        raise ValueError(
            f"{name} has {len(ids)} ids, and there are {rows} rows; partial fits by number have "
            f"added rows: assign ids of all rows to {name}, or None"
        )
    return to_arrow(np.arange(rows) if ids is None else ids)


def _features(factors: Floats) -> pa.ChunkedArray:
    """Return factors as lists, in pieces: the offsets of lists are int32."""
    starts = range(0, max(1, len(factors)), ROWS)
    return pa.chunked_array([lists(factors[start : start + ROWS]) for start in starts])


def _matrix(features: pa.ChunkedArray, width: int) -> Floats:
    """Return lists as the rows of a matrix."""
    found = np.empty((len(features), width), dtype=np.float32)
    first = 0
    for piece in features.chunks:
        found[first : first + len(piece)] = matrix(piece, width)
        first += len(piece)
    return found


def _collected(table: DataFrame) -> dict[str, Any]:
    """Return all columns by name; of the factors, which may be large, the pieces."""
    found = table.orderBy("id").toArrow()
    return {
        name: found[name] if name == "features" else found[name].combine_chunks()
        for name in found.column_names
    }


def _counts(users: dict[str, pa.Array]) -> Any:
    return users["count"].to_numpy() if "count" in users else np.ones(len(users["id"]))


def _checked(side: str, ids: pa.Array) -> IdArray:
    """Return ids as a local model has them: int64 or str."""
    if pa.types.is_integer(ids.type):
        return to_numpy(ids.cast(pa.int64()))
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        return to_numpy(ids)
    raise TypeError(
        f"ids of {side}s are of type {ids.type}, and local models have integers or texts; cast "
        f"{side}Col to string before fit"
    )
