"""What training asks of a Spark session: its settings, its kind, and small files."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

# By session: how many trainings it runs, and its settings before the first of them.
_PLAIN: dict[str, tuple[int, dict[str, str]]] = {}
_PLAIN_LOCK = Lock()


@contextmanager
def plain_plans(spark: SparkSession) -> Iterator[None]:
    """Set what an iterative job needs of the session; the last training to end restores it.

    Adaptive execution plans the whole history of a cached frame again in every job, and the rows
    here are of megabytes.
    """
    wanted = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    }
    # of the session itself, which several objects of Python may stand for
    key = getattr(spark, "session_id", None) or str(spark._jsparkSession.hashCode())
    with _PLAIN_LOCK:
        count, before = _PLAIN.get(key, (0, {}))
        if not count:
            before = {name: str(spark.conf.get(name)) for name in wanted}
            for name, value in wanted.items():
                spark.conf.set(name, value)
        _PLAIN[key] = count + 1, before
    try:
        yield
    finally:
        with _PLAIN_LOCK:
            count, before = _PLAIN.pop(key)
            if count > 1:
                _PLAIN[key] = count - 1, before
            else:
                for name, value in before.items():
                    spark.conf.set(name, value)


def is_remote(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def checkpoint_dir(spark: SparkSession) -> str | None:
    """Return Spark's own folder of checkpoints, if it is set."""
    if is_remote(spark):
        return spark.conf.get("spark.checkpoint.dir", None)
    return spark.sparkContext.getCheckpointDir()


def write_json(spark: SparkSession, path: str, value: Any) -> None:
    """Write a value where Spark writes."""
    text = json.dumps(value)
    frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
    frame.write.mode("overwrite").text(path)


def check_folder(spark: SparkSession, folder: str) -> None:
    """Raise if nothing can be written to a folder for checkpoints."""
    try:
        write_json(spark, f"{folder.rstrip('/')}/_written", {})
    except Exception as problem:
        reason = re.search(r"(?:Caused by: )?java\.\S+Exception: .*", str(problem))
        why = reason[0] if reason else str(problem).splitlines()[0]
        raise ValueError(
            f"checkpointDir={folder!r} cannot be written to: {why}; set it to a folder that the "
            "driver and all executors can write to"
        ) from problem


def read_jsons(spark: SparkSession, path: str) -> list[Any]:
    """Read all that `write_json` has written to a path with wildcards; skip what is damaged."""
    found = []
    for (text,) in spark.read.text(path, wholetext=True).collect():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def clear_folder(spark: SparkSession, path: str) -> None:
    """Delete all that is in a folder: what an empty table in partitions leaves is no file."""
    empty = spark.createDataFrame([], "value string, part string").write.partitionBy("part")
    empty.option("partitionOverwriteMode", "static").option(
        "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
    ).mode("overwrite").text(path)
