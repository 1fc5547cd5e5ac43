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

from pyspark.errors import AnalysisException
from pyspark.ml.param import TypeConverters
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame, SparkSession

from safecf.errors import FileFormatError
from safecf.models.json_values import plain, revived
from safecf.spark.params import number_or_auto
from safecf.spark.session import clear_folder


class Stored(MLWritable, MLReadable[Any]):
    """`save`, `write().overwrite().save`, and `load`; a class may add tables and metadata."""

    _source: str | None = None  # the folder that it was loaded from

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
        """Write the tables and the metadata to a new folder; `overwrite()` empties an old one."""
        spark, tables = self.sparkSession, self.instance._tables()
        there = _files(spark, path)
        if there is not None:
            if not self.shouldOverwrite:
                raise FileExistsError(
                    f"{path} is there already; use write().overwrite().save(...) to replace it "
                    "with all that it holds, or name another folder"
                )
            if tables and there & self._files_needed():
                raise ValueError(
                    f"{path} holds files that this very object reads; save it to another folder"
                )
            clear_folder(spark, path)
        for name, table in tables.items():
            table.write.parquet(os.path.join(path, name))
        params = {param.name: value for param, value in self.instance._paramMap.items()}
        text = DefaultParamsWriter._get_metadata_to_save(
            self.instance, spark, plain(self.instance._metadata()), plain(params)
        )
        frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
        frame.write.text(os.path.join(path, "metadata"))

    def _files_needed(self) -> set[str]:
        """Return the files that the tables are read from; a cached table does not tell them."""
        source, tables = self.instance._source, self.instance._tables().values()
        stored = None if source is None else _files(self.sparkSession, source)
        return (stored or set()).union(*(table.inputFiles() for table in tables))


def _files(spark: SparkSession, path: str) -> set[str] | None:
    """Return the names of all files in a folder as `inputFiles` has them; None: no such folder."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    try:
        # Named twice: Spark logs a stack trace if a single path is not there.
        return set(reader.load([path, path]).inputFiles())
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_NOT_FOUND":
            raise
        return None


class Reader(MLReader[Any]):
    """Loads an object of a class."""

    def __init__(self, kind: type[Stored]) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> Any:
        """Read what `Writer` has written."""
        spark = self.sparkSession
        try:
            metadata = DefaultParamsReader.loadMetadata(path, spark)
        except AnalysisException as problem:
            raise FileNotFoundError(
                f"there is no {self.kind.__name__} at {path}; give the folder that save wrote"
            ) from problem
        self._check_class(path, metadata["class"])
        extra = {name: revived(metadata[name]) for name in metadata.keys() - {"paramMap"}}
        instance: Any = self.kind._restored(
            extra, lambda name: spark.read.parquet(os.path.join(path, name))
        )
        instance._source = path
        instance._resetUid(metadata["uid"])
        for name in ("paramMap", "defaultParamMap"):
            metadata[name] = _params(instance, path, metadata[name])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance

    def _check_class(self, path: str, written: str) -> None:
        """Raise if the folder holds an object of another class."""
        module, _, found = written.rpartition(".")
        ours = module.startswith("safecf.spark.")
        if ours and found == self.kind.__name__:
            return
        where = "safecf.spark" if ours else module.replace("org.apache.spark", "pyspark")
        raise FileFormatError(
            f"{path} holds a {found} of {where}, not a {self.kind.__name__} of safecf.spark; try "
            f"{found}.load of {where}"
        )


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
