"""Epochs on Spark beside pyspark's own ALS, and what is shuffled against the formula."""

import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.clock import apart, status
from benchmarks.harness import DECLARED, Found, Row, Size

SIZE = 20_000, 5_000, 1_000_000  # users, items, ratings
NATIVE = "pyspark ALS, native BLAS"


def session(java: str = "") -> Any:
    """Return a session on this machine, which answers on loopback only."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an environment of peers lacks it

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two tasks on two cores
    options = DECLARED["spark"]["session"] | {"spark.driver.extraJavaOptions": java}
    options["spark.sql.warehouse.dir"] = tempfile.mkdtemp()
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def ratings(spark: Any, scale: float, more: int = 0) -> Any:
    """Return ratings of random users, and of `more` users for one hot item and a random one."""
    users, items, pairs = (round(scale * size) for size in SIZE)
    rng = np.random.default_rng(0)
    user = rng.integers(0, users, pairs, dtype=np.int32)
    item = (items * rng.random(pairs) ** 2.5).astype(np.int32)
    others = np.arange(users, users + more, dtype=np.int32)
    hot, random = np.full(more, items), rng.integers(0, items, more)
    columns = {
        "user": np.concatenate([user, others, others]),
        "item": np.concatenate([item, hot, random]).astype(np.int32),
        "rating": np.ones(pairs + 2 * more, dtype=np.float32),
    }
    path = f"{tempfile.mkdtemp()}/ratings.parquet"
    pq.write_table(pa.table(columns), path)
    frame = spark.read.parquet(path).repartition(2).persist()
    frame.count()
    return frame


def epochs(
    size: Size, ranks: list[int], rivals: list[Row], fits: list[int], times: float = 1.0
) -> Found:
    """Time all rivals at every rank, one process after the other.

    A rival has a name, an estimator, its Params, and options of Java. `fits` are the epochs of two
    fits, the difference of which is timed.
    """
    scale = times * size.scale
    users, items, pairs = (round(scale * each) for each in SIZE)
    shape = {"users": users, "items": items, "ratings": pairs}
    for d in map(size.factors, ranks):
        found = {rival["name"]: apart(case, rival, scale, d, *fits) for rival in rivals}
        for name, row in found.items():
            row |= {"rival": name, "factors": d, "ratio": row["epoch"] / found[NATIVE]["epoch"]}
            yield "epochs", shape | row


def case(rival: Row, scale: float, factors: int, few: int, many: int) -> Row:
    """Return the seconds of an epoch and of a fit, in a process that does nothing else."""
    spark, kind = session(rival.get("java", "")), resolve_name(rival["estimator"])
    params = {"numUserBlocks": 2, "numItemBlocks": 2, "seed": 0, **rival.get("params", {})}

    def fit(frame: Any, rank: int, count: int) -> float:
        begin = time.perf_counter()
        kind(rank=rank, maxIter=count, **params).fit(frame).userFactors.count()
        return time.perf_counter() - begin

    warm, frame = ratings(spark, min(scale, 1.0)), ratings(spark, scale)
    for _ in range(2):
        fit(warm, 32, 10)
    fit(frame, factors, 1)
    begin, fits = time.perf_counter(), []
    while len(fits) < 3 and time.perf_counter() - begin < 30:
        fits.append((fit(frame, factors, few), fit(frame, factors, many)))
    epoch = float(np.median([(whole - before) / (many - few) for before, whole in fits]))
    whole = float(np.median([whole for _, whole in fits]))
    return {"epoch": epoch, "epochs": many, "fit": whole, "repeats": len(fits)}


def shuffles(size: Size, rank: int, cases: list[Row]) -> Found:
    """Count over 1, 2 and 4 blocks, with both sides spread, and with a frequent item.

    A case has the blocks of both sides, and whether the items are spread as well (`both`). It has
    `more` users of one frequent item, whose pairs stay in the blocks of the users if it is `big`.
    """
    d = size.factors(rank)
    yield "setting", {"factors": d}
    for each in cases:
        given = each["blocks"], each["both"], size.count(each["more"], 0), each["big"]
        yield "shuffles", apart(shuffled, size.scale, d, *given)


def shuffled(scale: float, factors: int, blocks: int, both: bool, more: int, big: bool) -> Row:
    """Return the bytes that an epoch shuffles by Spark's own count, and by the formula."""
    from pyspark.storagelevel import StorageLevel  # noqa: PLC0415

    from safecf.als.loss import Loss  # noqa: PLC0415
    from safecf.spark import SAFER2, building, training  # noqa: PLC0415
    from safecf.spark.blocks import lay_out  # noqa: PLC0415

    if big:
        building.BIG = more // 2
    spark = session()
    frame = ratings(spark, scale, more)
    training.HELD = 0 if both else 4 * factors * (round(scale * SIZE[1]) + 1)  # of the items alone
    with ExitStack() as ending:
        users, items, *_ = lay_out(
            frame.selectExpr("user", "item", "rating as confidence"),
            (blocks, blocks),
            Loss(0.1),
            factors,
            partial(training.Options().holds, factors),
            StorageLevel.MEMORY_AND_DISK,
            ending,
            cached=True,
        )
        assert (users.held, items.held) == (False, not both)
        of_users, of_items = (_lengths(side.interactions) for side in (users, items))
    lengths = of_users + of_items
    assert bool(of_users["big_rows"]) == big
    hot, summed = (lengths[f"hot_{each}"] + lengths[f"big_{each}"] for each in ("rows", "columns"))
    params = {"numUserBlocks": blocks, "numItemBlocks": blocks, "checkpointInterval": -1, "seed": 0}
    folder, bytes_of = tempfile.mkdtemp() if both else None, {}
    for epochs in (2, 5):
        before = _written(spark)
        model = SAFER2(rank=factors, maxIter=epochs, checkpointDir=folder, **params).fit(frame)
        bytes_of[epochs] = _written(spark) - before
    words = -(-factors // 32) * 32
    checkpoint = users.size * (4 * factors + 24) + items.size * (4 * factors + 8)
    formula = {
        "rows": of_users["send"] * (2 * words + 16) + of_items["send"] * 2 * words,
        "normal": hot * (2 * factors * (factors + 1) + 4 * factors + 12),
        "state": users.size * (4 * factors + 16) + both * items.size * 4 * factors,
        "checkpoint": both * (checkpoint + 4 * lengths["send"] + 8 * summed),
    }
    return {
        "users": f"{users.size:,}" + (", a big item" if big else ""),
        "blocks": blocks,
        "spread": "users, items" if both else "users",
        "epoch": float(np.median([sum(each.seconds.values()) for each in model.history])),
        "sent": lengths["send"],
        **formula,
        "sum": sum(formula.values()),
        "measured": (bytes_of[5] - bytes_of[2]) / 3,
    }


def _lengths(interactions: Any) -> Counter[str]:
    """Return the length of all arrays of a name, as if they were of int32."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    found = interactions.groupBy("name").agg(F.sum(F.length("data"))).collect()
    return Counter({name: length // 4 for name, length in found})


def _written(spark: Any) -> int:
    """Return the bytes that all stages so far have written for shuffles."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def peak(scale: float, more: int, blocks: int, together: bool) -> Row:
    """Return the most memory that a Python worker has had in a fit with one frequent item.

    `together` makes the item's block of all its pairs, as if it were like any other.
    """
    from safecf.spark import SAFER2, building  # noqa: PLC0415

    if together:
        building.BIG = 2**62
    spark = session()
    frame = ratings(spark, scale, more)
    params = {"numUserBlocks": blocks, "numItemBlocks": blocks, "checkpointInterval": -1}
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(SAFER2(rank=32, maxIter=1, seed=0, **params).fit, frame)
        most = 0
        while not training.done():
            most = max(most, _worker_memory())
            time.sleep(0.2)
        training.result()
    users, _, pairs = (round(scale * each) for each in SIZE)
    size = {"users": users + more, "interactions": pairs + 2 * more, "blocks": blocks}
    return {**size, "pairs": "together" if together else "with their users", "peak": most}


def _worker_memory() -> int:
    """Return the largest peak, in bytes, of the Python workers that run now."""
    found = [0]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                found.append(status("VmHWM", process.name))
    return max(found)


def memory(size: Size, cases: list[Row]) -> Found:
    """Fit with an item of ever more users, whose pairs stay with them or come together.

    A case has the users of the frequent item, and the blocks of both sides.
    """
    for each in cases:
        for together in (False, True):
            more = size.count(each["more"])
            yield "peaks", apart(peak, size.scale, more, each["blocks"], together)
