"""Epochs on Spark beside pyspark's own ALS, and what is shuffled against the formula."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version
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
    "of blocks; its seconds per epoch are those of a fit of 6 epochs less one of 2, by 4, ours "
    "the median of the records of 6 epochs, both after a fit that warms up. As pip installs it, "
    "pyspark has no native BLAS; that of this machine is OpenBLAS, on one thread per "
    "task.",
)
SIZE = 20_000, 5_000, 1_000_000
CASES = [(1.0, 32), (1.0, 128), (10.0, 32), (10.0, 128)]
NO_NATIVE = " ".join(
    f"-Ddev.ludovic.netlib.{part}.nativeLib=none" for part in ("blas", "lapack", "arpack")
)
RIVALS = {
    "safecf SAFER2": "ours",
    "safecf IALS": "ours",
    "pyspark ALS, native BLAS": "native",
    "pyspark ALS, as installed": "plain",
}
BLOCKS = (1, 2, 4)


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


def ratings(spark: Any, scale: float) -> Any:
    users, items, pairs = (round(scale * size) for size in SIZE)
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "user": rng.integers(0, users, pairs, dtype=np.int32),
            "item": (items * rng.random(pairs) ** 2.5).astype(np.int32),
            "rating": np.ones(pairs, dtype=np.float32),
        }
    )
    path = Path(tempfile.mkdtemp()) / "ratings.parquet"
    pq.write_table(table, path)
    frame = spark.read.parquet(str(path)).repartition(2).persist()
    frame.count()
    return frame


def case(rival: str, scale: float, factors: int) -> dict[str, Any]:
    """Return the seconds of an epoch, in a process that does nothing else."""
    plain = RIVALS[rival] == "plain"
    frame = ratings(session(NO_NATIVE if plain else ""), scale)
    params = {"rank": factors, "numUserBlocks": 2, "numItemBlocks": 2, "seed": 0}
    if RIVALS[rival] == "ours":
        from safecf import spark as ours  # noqa: PLC0415

        kind = getattr(ours, rival.rsplit(maxsplit=1)[-1])
        kind(maxIter=1, **params).fit(frame)
        begin = time.perf_counter()
        model = kind(maxIter=6, **params).fit(frame)
        whole = time.perf_counter() - begin
        seconds = [sum(record.seconds.values()) for record in model.history]
        return {"epoch": float(np.median(seconds)), "fit": whole}
    from pyspark.ml.recommendation import ALS  # noqa: PLC0415

    def fit(epochs: int) -> float:
        begin = time.perf_counter()
        als = ALS(maxIter=epochs, implicitPrefs=True, regParam=0.01, **params)
        als.fit(frame).userFactors.count()
        return time.perf_counter() - begin

    fit(1)
    few, many = fit(2), fit(6)
    return {"epoch": (many - few) / 4, "fit": many}


def measure(options: Options) -> dict[str, Any]:
    """Time all cases, one process after the other."""
    found = []
    for scale, factors in CASES:
        for rival, kind in RIVALS.items():
            if kind == "plain" and scale > 1:
                continue
            sized, d = scale * options.scale, options.factors(factors)
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
        cells = short(each["epoch"]), short(each["fit"]), short(native / each["epoch"])
        rows.append([size, str(each["d"]), each["rival"], *cells])
    heads = [
        "users x items x ratings",
        "d",
        "",
        "s per epoch",
        "fit of 6 epochs, s",
        "native BLAS = 1",
    ]
    return [report.table(heads, rows)]


def shuffled(scale: float, factors: int, blocks: int) -> dict[str, Any]:
    """Return the bytes that an epoch shuffles by Spark's own count, and by the formula."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.storagelevel import StorageLevel  # noqa: PLC0415

    from safecf.als.loss import Loss  # noqa: PLC0415
    from safecf.spark import SAFER2, training  # noqa: PLC0415
    from safecf.spark.blocks import lay_out  # noqa: PLC0415

    spark = session()
    frame = ratings(spark, scale)
    users, items = (round(scale * size) for size in SIZE[:2])
    training.HELD = 4 * factors * items + 1  # the driver holds the items alone
    coded = frame.selectExpr("user", "item", "rating as confidence")
    level = StorageLevel.MEMORY_AND_DISK
    layout = lay_out(coded, (blocks, blocks), Loss(0.1), factors, lambda rows: rows <= items, level)
    sent = layout.users.interactions.where("name = 'send'").agg(F.sum(F.length("data")))
    hot = layout.users.interactions.where("name = 'hot'").agg(F.sum(F.length("data")))
    rows, hot_rows = (int(each.collect()[0][0] or 0) // 4 for each in (sent, hot))
    layout.users.unpersist()
    layout.items.unpersist()
    bytes_of = {}
    for epochs in (2, 5):
        before = _written(spark)
        model = SAFER2(
            rank=factors, maxIter=epochs, numUserBlocks=blocks, numItemBlocks=blocks, seed=0
        ).fit(frame)
        bytes_of[epochs] = _written(spark) - before
    seconds = float(np.median([sum(each.seconds.values()) for each in model.history]))
    words = -(-factors // 32) * 32
    formula = {
        "rows": rows * (2 * words + 16),
        "normal equations": hot_rows * (2 * factors * (factors + 1) + 4 * factors + 12),
        "state": layout.users.size * (4 * factors + 16),
    }
    return {
        "blocks": blocks,
        "rows": rows,
        "measured": (bytes_of[5] - bytes_of[2]) / 3,
        "formula": formula,
        "epoch": seconds,
        "users": users,
    }


def _written(spark: Any) -> int:
    """Return the bytes that all stages so far have written for shuffles."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def measure_shuffles(options: Options) -> dict[str, Any]:
    """Count over 1, 2 and 4 blocks."""
    found = []
    for blocks in BLOCKS:
        result = _apart(f"shuffled({options.scale}, {options.factors(128)}, {blocks})")
        progress(str(result))
        found.append(result)
    return {"found": found, "d": options.factors(128)}


def shuffle_section(results: dict[str, Any], options: Options) -> list[str]:
    """Return a table of bytes by blocks."""
    rows = [
        [
            str(each["blocks"]),
            short(each["epoch"]),
            f"{each['rows']:,}",
            *(f"{each['formula'][part] / 1e6:.1f}" for part in each["formula"]),
            f"{sum(each['formula'].values()) / 1e6:.1f}",
            f"{each['measured'] / 1e6:.1f}",
        ]
        for each in results["found"]
    ]
    heads = [
        "blocks",
        "s per epoch",
        "rows sent",
        "rows, MB",
        "normal equations, MB",
        "state, MB",
        "sum",
        "shuffled, MB",
    ]
    about = (
        f"SAFER2, d = {results['d']}, the first set; the users' factors are spread over the "
        "blocks, the driver holds the items'. The formula is that of [spark.md](../spark.md). "
        "Shuffled is what Spark's stages wrote, per epoch: a fit of 5 epochs less one of 2, by 3. "
        "Spark compresses what it shuffles."
    )
    return [about, report.table(heads, rows)]


PARTS = {
    "epochs": Part("One epoch", measure, section),
    "shuffles": Part("What is shuffled", measure_shuffles, shuffle_section),
}
SPARK = Parts("spark", "Speed on Spark", ABOUT, PARTS)


def main(part: list[str] | None = None, scale: float = 1.0) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them.

    --part may be repeated: epochs, shuffles, or page to measure nothing. With --scale below 1
    everything is smaller, and stays under build/.
    """
    SPARK.run(part, Options(scale, threads=2, repeats=1), lambda: {"pyspark": version("pyspark")})
