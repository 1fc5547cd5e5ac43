"""Files of estimators, models and evaluators: metadata as pyspark writes it, and Parquet tables.

    PATH/metadata   one line of JSON: class, uid, Params, and what training has found
    PATH/users      id, features, ...
    PATH/items      id, features, ...

JSON has neither infinities nor NaN: they are written as texts, as in the local models' files.
Only DataFrames read and write, so that it works through Spark Connect.
"""

import os
from collections.abc import Callable
from typing import Any, Self

from pyspark.ml.param import TypeConverters
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame

from safecf.errors import FileFormatError
from safecf.models.json_values import plain, revived
from safecf.spark.params import number_or_auto


class Stored(MLWritable, MLReadable[Any]):
    """`save`, `write().overwrite().save`, and `load`; a class may add tables and metadata."""

    def write(self) -> "Writer":
        """Return what saves this object."""
        return Writer(self)

    @classmethod
    def read(cls) -> "Reader":
        """Return what loads an object of this class."""
        return Reader(cls)

    def _tables(self) -> dict[str, DataFrame]:
        """Return the DataFrames to be kept, by the names of their folders."""
        return {}

    def _metadata(self) -> dict[str, Any]:
        """Return the values to be kept beside the Params."""
        return {}

    @classmethod
    def _restored(cls, metadata: dict[str, Any], read: Callable[[str], DataFrame]) -> Self:
        """Return an object with default Params; `read(name)` gives a table."""
        return cls()


class Writer(MLWriter):
    """Saves an object; its metadata come last, so that a folder with metadata is complete."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def save(self, path: str) -> None:
        """Write the tables and the metadata; raise if there are some, unless `overwrite()`."""
        mode, spark = "overwrite" if self.shouldOverwrite else "error", self.sparkSession
        for name, table in self.instance._tables().items():
            table.write.mode(mode).parquet(os.path.join(path, name))
        params = {param.name: value for param, value in self.instance._paramMap.items()}
        text = DefaultParamsWriter._get_metadata_to_save(
            self.instance, spark, plain(self.instance._metadata()), plain(params)
        )
        frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
        frame.write.mode(mode).text(os.path.join(path, "metadata"))


class Reader(MLReader[Any]):
    """Loads an object of a class."""

    def __init__(self, kind: type[Stored]) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> Any:
        """Read what `Writer` has written."""
        spark = self.sparkSession
        metadata = DefaultParamsReader.loadMetadata(path, spark)
        found = metadata["class"].rpartition(".")[2]
        if found != self.kind.__name__:
            raise FileFormatError(
                f"{path} holds a {found}, not a {self.kind.__name__}; try {found}.load"
            )
        extra = {name: revived(metadata[name]) for name in metadata.keys() - {"paramMap"}}
        instance: Any = self.kind._restored(
            extra, lambda name: spark.read.parquet(os.path.join(path, name))
        )
        instance._resetUid(metadata["uid"])
        for name in ("paramMap", "defaultParamMap"):
            metadata[name] = _params(instance, path, metadata[name])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance


def _params(instance: Any, path: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return values of Params, texts for infinities as numbers; raise if a Param is unknown."""
    unknown = [name for name in values if not instance.hasParam(name)]
    if unknown:
        raise FileFormatError(
            f"{path}: {type(instance).__name__} has no Param {unknown[0]!r}; try a newer version "
            "of safecf"
        )
    numbers = TypeConverters.toFloat, number_or_auto
    return {
        name: revived(value) if instance.getParam(name).typeConverter in numbers else value
        for name, value in values.items()
    }
