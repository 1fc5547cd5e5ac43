"""Checkpoints of a training, written by Spark where it writes everything else."""

import logging
import uuid
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from safecf.spark.session import clear_folder, read_jsons, write_json

log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one training, of which the last two stay.

        FOLDER/<epoch>-<random>/users, items   tables of arrays
        FOLDER/<epoch>-<random>/record         a line of JSON, written last

    Names are random, so that two trainings of the same data and options at a time do not get into
    each other's way.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark, self.folder = spark, folder
        self._written: list[str] = []

    def write(self, epoch: int, tables: dict[str, DataFrame], record: dict[str, Any]) -> str:
        """Write a checkpoint; return its name."""
        name = f"{epoch:06}-{uuid.uuid4().hex[:12]}"
        for side, table in tables.items():
            table.write.parquet(f"{self.folder}/{name}/{side}")
        rows = {side: self.table(name, side).count() for side in tables}
        whole = {**record, "name": name, "epoch": epoch, "rows": rows}
        write_json(self.spark, f"{self.folder}/{name}/record", whole)
        self._written.append(name)
        if len(self._written) > 2:
            clear_folder(self.spark, f"{self.folder}/{self._written.pop(0)}")
        return name

    def table(self, name: str, side: str) -> DataFrame:
        """Return a table of a checkpoint."""
        return self.spark.read.parquet(f"{self.folder}/{name}/{side}")

    def newest(self) -> dict[str, Any] | None:
        """Return the record of the newest checkpoint that is whole."""
        try:
            found = read_jsons(self.spark, f"{self.folder}/*/record")
        except AnalysisException:  # there is none
            return None
        for record in sorted(found, key=lambda record: str(record["name"]), reverse=True):
            if self._is_whole(record):
                return record
        return None

    def _is_whole(self, record: dict[str, Any]) -> bool:
        """Whether all rows of the tables are there."""
        where = f"{self.folder}/{record['name']}"
        try:
            found = {side: self.table(record["name"], side).count() for side in record["rows"]}
        except Exception as problem:  # whatever it is, an older one may do
            log.warning("%s cannot be read and is left out: %s", where, problem)
            return False
        if found != record["rows"]:
            log.warning("%s lacks rows and is left out", where)
            return False
        return True
