"""Epochs on Spark beside pyspark's own ALS, and what is shuffled against the formula."""

import json
import os
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.clock import apart
from benchmarks.harness import Part, Row, Size, Tables, benchmark, progress

SIZE = 20_000, 5_000, 1_000_000  # users, items, ratings
RANKS = (32, 128)
NO_NATIVE = " ".join(
    f"-Ddev.ludovic.netlib.{part}.nativeLib=none" for part in ("blas", "lapack", "arpack")
)
NATIVE, PLAIN = "pyspark ALS, native BLAS", "pyspark ALS, as installed"
RIVALS = ("safecf SAFER2", "safecf IALS", NATIVE, PLAIN)
# Blocks of both sides, whether the items are spread as well, more users, of one frequent item, and
# whether the pairs of that item stay in the blocks of their users.
SHUFFLES = (
    (1, False, 0, False),
    (2, False, 0, False),
    (4, False, 0, False),
    (4, True, 0, False),
    (4, False, 80_000, False),
    (4, False, 80_000, True),
)
# Users of one frequent item, and blocks of both sides.
MEMORY = ((2_000_000, 16), (4_000_000, 32))


def session(java: str = "") -> Any:
    """Return a session on this machine, which answers on loopback only."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an environment of peers lacks it

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two tasks on two cores
    options = {
        "spark.driver.memory": "8g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }
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
    table = pa.table(
        {
            "user": np.concatenate([user, others, others]),
            "item": np.concatenate([item, hot, random]).astype(np.int32),
            "rating": np.ones(pairs + 2 * more, dtype=np.float32),
        }
    )
    path = Path(tempfile.mkdtemp()) / "ratings.parquet"
    pq.write_table(table, path)
    frame = spark.read.parquet(str(path)).repartition(2).persist()
    frame.count()
    return frame


def epochs(size: Size, times: float = 1.0) -> Tables:
    """Time all rivals at every rank, one process after the other."""
    rows: list[Row] = []
    scale = times * size.scale
    users, items, pairs = (round(scale * each) for each in SIZE)
    for rank, rival in product(RANKS, RIVALS):
        if rival == PLAIN and times > 1:
            continue
        row: Row = {"users": users, "items": items, "ratings": pairs, "rival": rival}
        row["factors"] = size.factors(rank)
        row |= apart("spark", "case", rival, scale, row["factors"], times > 1)
        progress(str(row))
        rows.append(row)
    for row in rows:
        [native] = [
            each for each in rows if each["rival"] == NATIVE and each["factors"] == row["factors"]
        ]
        row["ratio"] = row["epoch"] / native["epoch"]
    return {"setting": [{}], "epochs": rows}


def case(rival: str, scale: float, factors: int, large: bool) -> Row:
    """Return the seconds of an epoch and of a fit, in a process that does nothing else."""
    spark = session(NO_NATIVE if rival == PLAIN else "")
    params = {"numUserBlocks": 2, "numItemBlocks": 2, "seed": 0}
    if rival.startswith("safecf"):
        from safecf import spark as ours  # noqa: PLC0415

        kind = getattr(ours, rival.rsplit(maxsplit=1)[-1])
    else:
        from pyspark.ml.recommendation import ALS as KIND  # noqa: PLC0415

        kind, params = KIND, params | {"implicitPrefs": True, "regParam": 0.01}

    def fit(frame: Any, rank: int, count: int) -> float:
        begin = time.perf_counter()
        kind(rank=rank, maxIter=count, **params).fit(frame).userFactors.count()
        return time.perf_counter() - begin

    few, many = (1, 3) if large else (2, 6)
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


def shuffles(size: Size) -> Tables:
    """Count over 1, 2 and 4 blocks, with both sides spread, and with a frequent item."""
    rows, d = [], size.factors(128)
    for blocks, both, more, big in SHUFFLES:
        rows.append(
            apart("spark", "shuffled", size.scale, d, blocks, both, size.count(more, 0), big)
        )
        progress(str(rows[-1]))
    return {"setting": [{"factors": d}], "shuffles": rows}


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
    options = training.Options()
    with ExitStack() as ending:
        users, items, *_ = lay_out(
            frame.selectExpr("user", "item", "rating as confidence"),
            (blocks, blocks),
            Loss(0.1),
            factors,
            partial(options.holds, factors),
            StorageLevel.MEMORY_AND_DISK,
            ending,
            cached=True,
        )
        assert (users.held, items.held) == (False, not both)
        assert bool(_count(users.interactions, "big_rows")) == big
        rows, of_items = (_count(side.interactions, "send") for side in (users, items))
        hot, summed = (
            sum(
                _count(side.interactions, f"{kind}_{name}")
                for side in (users, items)
                for kind in ("hot", "big")
            )
            for name in ("rows", "columns")
        )
    bytes_of = {}
    for epochs in (2, 5):
        before = _written(spark)
        model = SAFER2(
            rank=factors,
            maxIter=epochs,
            numUserBlocks=blocks,
            numItemBlocks=blocks,
            seed=0,
            checkpointInterval=-1,
            checkpointDir=tempfile.mkdtemp() if both else None,
        ).fit(frame)
        bytes_of[epochs] = _written(spark) - before
    words = -(-factors // 32) * 32
    checkpoint = users.size * (4 * factors + 24) + items.size * (4 * factors + 8)
    formula = {
        "rows": rows * (2 * words + 16) + of_items * 2 * words,
        "normal": hot * (2 * factors * (factors + 1) + 4 * factors + 12),
        "state": users.size * (4 * factors + 16) + both * items.size * 4 * factors,
        "checkpoint": both * (checkpoint + 4 * (rows + of_items) + 8 * summed),
    }
    return {
        "users": f"{users.size:,}" + (", a big item" if big else ""),
        "blocks": blocks,
        "spread": "users, items" if both else "users",
        "epoch": float(np.median([sum(each.seconds.values()) for each in model.history])),
        "sent": rows + of_items,
        **formula,
        "sum": sum(formula.values()),
        "measured": (bytes_of[5] - bytes_of[2]) / 3,
    }


def _count(interactions: Any, name: str) -> int:
    """Return the length of all arrays of a name, of int32."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    found = interactions.where(F.col("name") == name).agg(F.sum(F.length("data"))).collect()
    return int(found[0][0] or 0) // 4


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
        try:
            if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                continue
            lines = (process / "status").read_text().splitlines()
        except OSError:  # it has ended
            continue
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return max(found)


def memory(size: Size) -> Tables:
    """Fit with an item of ever more users, whose pairs stay with them or come together."""
    rows = []
    for (more, blocks), together in product(MEMORY, (False, True)):
        rows.append(apart("spark", "peak", size.scale, size.count(more), blocks, together))
        progress(str(rows[-1]))
    return {"setting": [{}], "peaks": rows}


EXPERIMENT = benchmark(
    "spark",
    "Speed on Spark",
    {
        "epochs": Part("One epoch", "spark:epochs"),
        "larger": Part("One epoch, ten times the data", "spark:epochs", times=10.0),
        "shuffles": Part("What is shuffled", "spark:shuffles"),
        "memory": Part("The memory of a task", "spark:memory"),
    },
    beside=("pyspark",),
)
