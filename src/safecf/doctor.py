"""`examine`: what this machine has, and whether it works; `needs`: the memory that data needs."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from safecf import _core
from safecf.backends import best_device, thread_count
from safecf.checks import check_integer
from safecf.data.datasets.download import cache_folder
from safecf.data.datasets.loading import DATASETS
from safecf.data.datasets.synthetic import synthetic
from safecf.free_memory import MEMINFO, available_bytes, training_bytes
from safecf.models import SAFER2, Recommender

PROBE_SECONDS = 120
LONGEST_ANSWER = 200  # characters of another program's message
ROW_BYTES = 47  # peak of reading a row of Parquet, measured: docs/results/parquet.md
AGREEMENT = 1e-4  # relative difference of the scores from those of the float64 twin

# By extra, or by package: a line of Python that prints what was found.
EXTRAS = {
    "torch": "from safecf.backends.torch.devices import described; print(described())",
    "tune": "import optuna; print('optuna', optuna.__version__)",
    "serve": "import fastapi, uvicorn; print('fastapi', fastapi.__version__, "
    "'uvicorn', uvicorn.__version__)",
    "ann": "import usearch; print('usearch', usearch.__version__)",
    "faiss": "import faiss; print('faiss', faiss.__version__)",
    "plots": "import matplotlib; print('matplotlib', matplotlib.__version__)",
    "spark": "import pyspark; print('pyspark', pyspark.__version__)",
}
# How to install what is no extra.
PACKAGES = {"faiss": "; try pip install faiss-cpu"}
# Programs that are asked for their version.
PROGRAMS = {
    "GPU": ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"],
    "Java": ["java", "-version"],
}


@dataclass(frozen=True)
class Finding:
    """What was found under a name. `works` is None for what is not there and need not be."""

    name: str
    found: str
    works: bool | None = True


@dataclass(frozen=True)
class Needs:
    """Bytes that data of some size needs: to be read, in training at most, and as a model's file.

    >>> needs(1_000_000, 50_000, 100_000_000, factors=256).training
    3194781824
    """

    reading: int
    training: int
    file: int


def examine() -> dict[str, list[Finding]]:
    """Look at the software, the machine, the extras and the data, and run the self-test.

    >>> all(each.works is not False for found in examine().values() for each in found)
    True
    """
    return {
        "software": list(_software()),
        "machine": list(_machine()),
        "extras": [*(_extra(name, code) for name, code in EXTRAS.items()), *_programs()],
        "data": list(_data()),
        "self-test": list(self_test()),
    }


def needs(users: int, items: int, interactions: int, factors: int = 256) -> Needs:
    """Return the bytes that a data set of this size needs, by the formula of docs/memory.md."""
    sizes = {"users": users, "items": items, "interactions": interactions, "factors": factors}
    for name, value in sizes.items():
        check_integer(name, value, 1, default=1000)
    if interactions > users * items:
        raise ValueError(
            f"interactions={interactions}: {users:,} users and {items:,} items are only "
            f"{users * items:,} pairs; lower interactions"
        )
    matrix = 2 * 4 * interactions + 8 * (users + items)
    training = training_bytes(users, items, interactions, factors, thread_count(0))
    return Needs(
        reading=ROW_BYTES * interactions,
        training=matrix + training,
        file=4 * (factors + 3) * users + 4 * (factors + 1) * items,
    )


def self_test() -> Iterator[Finding]:
    """Train, save, load and recommend on a small data set, and compare with slower ways."""
    user_items = synthetic(300, 120, 6000, tastes=3).matrix
    kept: dict[str, Recommender] = {}

    def train(**options: Any) -> Recommender:
        options = {"solver": "exact"} | options
        model = SAFER2(16, iterations=3, random_state=0, **options)
        return model.fit(user_items, show_progress=False)

    def trains() -> None:
        kept["model"] = train()

    def agrees(model: Recommender | None = None) -> None:
        ours, twin = _scores(model or kept["model"]), _scores(train(backend="numpy"))
        error = np.linalg.norm(ours - twin) / np.linalg.norm(twin)
        if not error < AGREEMENT:
            raise ArithmeticError(f"the scores differ by {error:.1e} of their size")

    def agrees_on_gpu() -> None:
        agrees(train(device="cuda", solver="spectral-cg", tolerance=1e-6))

    def repeats() -> None:
        _check_same(kept["model"], train(num_threads=1))

    def saves() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            kept["model"].save(path)
            _check_same(kept["model"], Recommender.load(path))

    def recommends() -> None:
        users = np.arange(user_items.shape[0])
        model: Any = kept["model"]
        ids, _ = model.recommend(users, user_items, filter_already_liked_items=True)
        scores = _scores(model)
        scores[user_items.nonzero()] = -np.inf
        best = np.sort(scores, axis=1)[:, ::-1][:, : ids.shape[1]]
        if not np.allclose(np.take_along_axis(scores, ids, axis=1), best, atol=1e-5):
            raise ArithmeticError("the best items are not those of the matrix product")

    checks = {
        "train SAFER2": trains,
        "the same as the float64 twin": agrees,
        "the same bits on one thread": repeats,
        "save and load": saves,
        "recommend": recommends,
    }
    if best_device() == "cuda":
        checks["the same on the GPU"] = agrees_on_gpu
    for name, check in checks.items():
        yield _checked(name, check)


def _checked(name: str, check: Callable[[], None]) -> Finding:
    begin = time.perf_counter()
    try:
        check()
    except Exception as problem:  # whatever it is, the doctor goes on
        return Finding(name, f"{type(problem).__name__}: {problem}"[:LONGEST_ANSWER], False)
    return Finding(name, f"{time.perf_counter() - begin:.2f} s")


def _scores(model: Any) -> NDArray[np.float64]:
    """X Y' in float64; the factors themselves may be rotated."""
    users, items = (np.asarray(each, np.float64) for each in model.both_factors())
    return np.asarray(users @ items.T)


def _check_same(first: Any, second: Any) -> None:
    for name in ("user_factors", "item_factors"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ArithmeticError(f"{name} are not the same")


def _software() -> Iterator[Finding]:
    yield Finding("safecf", version("safecf"))
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    for name in ("numpy", "scipy", "pyarrow", "safetensors", "typer", "rich"):
        yield Finding(name, version(name))
    libraries = {
        f"{each['internal_api']} {each['version']}, {each['num_threads']} threads"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    yield Finding("BLAS", "; ".join(sorted(libraries)) or "not known", True if libraries else None)


def _machine() -> Iterator[Finding]:
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("CPU", _cpu_name())
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    yield Finding("cores", f"{cores}, of which this process may use {usable}")
    yield Finding("threads", f"{thread_count(0)} by default (num_threads=0)")
    first, *others = _core.isas()
    yield Finding("kernels", first + (f" (also there: {', '.join(others)})" if others else ""))
    free, total = available_bytes(), _memory()
    known = [
        f"{size / 1e9:,.1f} GB {what}" for size, what in ((total, "in all"), (free, "free")) if size
    ]
    yield Finding("memory", ", ".join(known) or "not known", True if known else None)


def _data() -> Iterator[Finding]:
    chosen = os.environ.get("SAFECF_DATA")
    if chosen is None:
        yield Finding("SAFECF_DATA", "not set", None)
    else:
        there = Path(chosen).is_dir()
        yield Finding(
            "SAFECF_DATA", chosen if there else f"{chosen}: there is no such folder", there
        )
    cache = cache_folder()
    folder = next(each for each in (cache, *cache.absolute().parents) if each.exists())
    writable = folder.is_dir() and os.access(folder, os.W_OK)
    state = "" if cache.exists() else ", which is made by the first download"
    remedy = "" if writable else "; it cannot be written: set SAFECF_CACHE to another folder"
    yield Finding("cache", f"{cache}{state}{remedy}", writable)
    for name, dataset in DATASETS.items():
        files = (dataset.find(place) for place in (chosen, cache) if place)
        found = next(filter(None, files), None)
        yield Finding(name, str(found or "not there"), None if found is None else True)


def _extra(name: str, code: str) -> Finding:
    """Import an extra in a process of its own, which may end as it likes."""
    guarded = (
        f"try:\n    {code}\nexcept ModuleNotFoundError as problem:\n"
        "    print('missing', problem.name, end='')\n"
    )
    answer, works = _ask([sys.executable, "-W", "ignore", "-c", guarded])
    if works and answer.startswith("missing "):
        missing = answer.removeprefix("missing ")
        remedy = PACKAGES.get(name, f"; try pip install 'safecf[{name}]'")
        return Finding(name, f"{missing} is not installed{remedy}", None)
    return Finding(name, answer, works)


def _programs() -> Iterator[Finding]:
    for name, command in PROGRAMS.items():
        if shutil.which(command[0]) is None:
            yield Finding(name, f"there is no {command[0]}", None)
        else:
            yield Finding(name, *_ask(command))


def _ask(command: list[str]) -> tuple[str, bool]:
    """Return the first line that a program prints, the last one if it failed, and if it did not."""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)[:LONGEST_ANSWER], False
    lines = ended.stdout.decode(errors="replace").strip().splitlines() or [""]
    if ended.returncode:
        return f"{lines[-1][:LONGEST_ANSWER]} (exit code {ended.returncode})", False
    return lines[0][:LONGEST_ANSWER], True


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "not known"


def _memory() -> int | None:
    try:
        return int(MEMINFO.read_text().partition("MemTotal:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None
