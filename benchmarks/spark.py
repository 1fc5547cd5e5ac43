"""Epochs on Spark beside pyspark's own ALS, and what is shuffled against the formula."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import report
from benchmarks.parts import Part, Parts
from benchmarks.records import Options, progress
from benchmarks.report import short

ABOUT = (
    "Ratings of 1, items by popularity, in a Parquet file, cached. `local[2]`: two tasks at a "
    "time, one thread each. pyspark's ALS has `implicitPrefs`, the same rank and the same numbers "
    "of blocks. Seconds per epoch are those of a fit of 6 epochs less one of 2, by 4 (3 less 1, by "
    "2, for the larger set), the median of three, one where fits take longer than half a minute, "
    "after 20 epochs of rank 32 on the first set: the JVM compiles what runs often. A whole fit "
    "has the making of blocks in it. As pip installs it, pyspark has no native BLAS; that of this "
    "machine is OpenBLAS, on one thread per task. In the last column, less is faster.",
)
SIZE = 20_000, 5_000, 1_000_000
RANKS = (32, 128)
NO_NATIVE = " ".join(
    f"-Ddev.ludovic.netlib.{part}.nativeLib=none" for part in ("blas", "lapack", "arpack")
)
RIVALS = {
    "safecf SAFER2": "ours",
    "safecf IALS": "ours",
    "pyspark ALS, native BLAS": "native",
    "pyspark ALS, as installed": "plain",
}
# Blocks of both sides, whether the items are spread as well, more users, of one hot item, and
# whether that is a big one.
SHUFFLES = (
    (1, False, 0, False),
    (2, False, 0, False),
    (4, False, 0, False),
    (4, True, 0, False),
    (4, False, 80_000, False),
    (4, False, 80_000, True),
)
# Users of one hot item, and blocks of both sides.
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


def case(rival: str, scale: float, factors: int) -> dict[str, Any]:
    """Return the seconds of an epoch, in a process that does nothing else."""
    spark = session(NO_NATIVE if RIVALS[rival] == "plain" else "")
    params = {"numUserBlocks": 2, "numItemBlocks": 2, "seed": 0}
    if RIVALS[rival] == "ours":
        from safecf import spark as ours  # noqa: PLC0415

        kind = getattr(ours, rival.rsplit(maxsplit=1)[-1])
    else:
        from pyspark.ml.recommendation import ALS as KIND  # noqa: PLC0415

        kind, params = KIND, params | {"implicitPrefs": True, "regParam": 0.01}

    def fit(frame: Any, rank: int, epochs: int) -> float:
        begin = time.perf_counter()
        kind(rank=rank, maxIter=epochs, **params).fit(frame).userFactors.count()
        return time.perf_counter() - begin

    few, many = (2, 6) if scale <= 1 else (1, 3)
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


def measure(options: Options, scale: float = 1.0) -> dict[str, Any]:
    """Time all rivals at every rank, one process after the other."""
    found, sized = [], scale * options.scale
    for rank, (rival, kind) in product(RANKS, RIVALS.items()):
        if kind == "plain" and scale > 1:
            continue
        d = options.factors(rank)
        result = _apart(f"case({rival!r}, {sized}, {d})")
        progress(f"{sized:g}, d = {d}, {rival}: {result}")
        found.append({"scale": sized, "d": d, "rival": rival, **result})
    return {"found": found}


def _apart(call: str) -> dict[str, Any]:
    code = f"import json; from benchmarks import spark; print(json.dumps(spark.{call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Return a table of all cases."""
    rows = []
    for each in results["found"]:
        size = " x ".join(f"{round(each['scale'] * size):,}" for size in SIZE)
        native = next(
            other["epoch"]
            for other in results["found"]
            if (other["scale"], other["d"]) == (each["scale"], each["d"])
            and RIVALS[other["rival"]] == "native"
        )
        fit = f"{short(each['fit'])} ({each['epochs']})"
        cells = short(each["epoch"]), fit, short(each["epoch"] / native)
        rows.append([size, str(each["d"]), each["rival"], *cells])
    heads = [
        "users x items x ratings",
        "d",
        "",
        "s per epoch",
        "whole fit, s (epochs)",
        "native BLAS = 1",
    ]
    return [report.table(heads, rows)]


def shuffled(
    scale: float, factors: int, blocks: int, both: bool, more: int, big: bool
) -> dict[str, Any]:
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
    seconds = float(np.median([sum(each.seconds.values()) for each in model.history]))
    words = -(-factors // 32) * 32
    formula = {
        "rows": rows * (2 * words + 16) + of_items * 2 * words,
        "normal equations": hot * (2 * factors * (factors + 1) + 4 * factors + 12),
        "state": users.size * (4 * factors + 16) + both * items.size * 4 * factors,
        "checkpoint": both
        * (
            users.size * (4 * factors + 24)
            + items.size * (4 * factors + 8)
            + 4 * (rows + of_items)
            + 8 * summed
        ),
    }
    return {
        "blocks": blocks,
        "spread": "users, items" if both else "users",
        "big": big,
        "users": users.size,
        "rows": rows + of_items,
        "measured": (bytes_of[5] - bytes_of[2]) / 3,
        "formula": formula,
        "epoch": seconds,
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


def measure_shuffles(options: Options) -> dict[str, Any]:
    """Count over 1, 2 and 4 blocks, with both sides spread, and with a hot or a big item."""
    found = []
    for blocks, both, more, big in SHUFFLES:
        sizes = options.scale, options.factors(128), blocks, both, round(options.scale * more), big
        result = _apart(f"shuffled{sizes}")
        progress(str(result))
        found.append(result)
    return {"found": found, "d": options.factors(128)}


def shuffle_section(results: dict[str, Any], options: Options) -> list[str]:
    """Return a table of bytes by blocks."""
    rows = [
        [
            f"{each['users']:,}" + (", a big item" if each["big"] else ""),
            str(each["blocks"]),
            each["spread"],
            short(each["epoch"]),
            f"{each['rows']:,}",
            *(f"{each['formula'][part] / 1e6:.1f}" for part in each["formula"]),
            f"{sum(each['formula'].values()) / 1e6:.1f}",
            f"{each['measured'] / 1e6:.1f}",
        ]
        for each in results["found"]
    ]
    heads = [
        "users",
        "blocks",
        "spread",
        "s per epoch",
        "rows sent",
        "rows, MB",
        "normal equations, MB",
        "state, MB",
        "checkpoint, MB",
        "sum",
        "shuffled, MB",
    ]
    about = (
        f"SAFER2, d = {results['d']}, the first set. The driver holds the items' factors where "
        "only the users' are spread over the blocks. The additional users of the last two rows "
        "have two items each, one of which is the same for all of them: a hot item, in the last "
        "row a big one, whose pairs stay in the blocks of their users. The formula is that of "
        "[spark.md](../spark.md#network). Shuffled is what Spark's stages wrote, per epoch: a fit "
        "of 5 epochs less one of 2, by 3. Spark compresses what it shuffles."
    )
    return [about, report.table(heads, rows)]


def peak(more: int, blocks: int, together: bool) -> dict[str, Any]:
    """Return the most memory that a Python worker has had in a fit with one hot item.

    `together` makes the item's block of all its pairs, as if it were like any other.
    """
    from safecf.spark import SAFER2, building  # noqa: PLC0415

    if together:
        building.BIG = 2**62
    spark = session()
    frame = ratings(spark, 1.0, more)
    params = {"numUserBlocks": blocks, "numItemBlocks": blocks, "checkpointInterval": -1}
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(SAFER2(rank=32, maxIter=1, seed=0, **params).fit, frame)
        most = 0
        while not training.done():
            most = max(most, _worker_memory())
            time.sleep(0.2)
        training.result()
    size = {"users": SIZE[0] + more, "pairs": SIZE[2] + 2 * more, "blocks": blocks}
    return {**size, "together": together, "peak": most}


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


def measure_memory(options: Options) -> dict[str, Any]:
    """Fit with an item of ever more users, whose pairs stay with them or come together."""
    found = []
    for (more, blocks), together in product(MEMORY, (False, True)):
        result = _apart(f"peak({round(options.scale * more)}, {blocks}, {together})")
        progress(str(result))
        found.append(result)
    return {"found": found}


def memory_section(results: dict[str, Any], options: Options) -> list[str]:
    """Return a table of peaks."""
    rows = [
        [
            f"{each['users']:,}",
            f"{each['pairs']:,}",
            str(each["blocks"]),
            "together" if each["together"] else "with their users",
            f"{each['peak'] / 1e6:,.0f}",
        ]
        for each in results["found"]
    ]
    about = (
        "The most memory of a Python worker in a `SAFER2` fit of one epoch at d = 32, imports and "
        "all. All users but the first 20,000 have one item in common, and a random one. The pairs "
        "of an item with so many users stay in the blocks of their users; `together` is the same "
        "fit without that: they come together in one task."
    )
    heads = ["users", "interactions", "blocks", "the hot item's pairs", "peak, MB"]
    return [about, report.table(heads, rows)]


PARTS = {
    "epochs": Part("One epoch", measure, section),
    "larger": Part("One epoch, ten times the data", partial(measure, scale=10.0), section),
    "shuffles": Part("What is shuffled", measure_shuffles, shuffle_section),
    "memory": Part("The memory of a task", measure_memory, memory_section),
}
SPARK = Parts("spark", "Speed on Spark", ABOUT, PARTS)


def main(part: list[str] | None = None, scale: float = 1.0) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them.

    --part may be repeated: epochs, larger, shuffles, memory, or page to measure nothing. With
    --scale below 1 everything is smaller, and stays under build/.
    """
    SPARK.run(part, Options(scale, threads=2, repeats=1), lambda: {"pyspark": version("pyspark")})
