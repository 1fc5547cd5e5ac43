"""Training on executors of their own: an executor dies, the driver dies."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from safecf.spark import SAFER2, training
from tests.spark.training_data import (
    BLOCKS,
    assert_close,
    factors,
    fit_locally,
    orders,
    ratings,
    read,
    sum_popular_items,
)

pytestmark = pytest.mark.slow
PARAMS = {
    "rank": 8,
    "maxIter": 4,
    "seed": 5,
    "solver": "exact",
    "numUserBlocks": BLOCKS[0],
    "numItemBlocks": BLOCKS[1],
}
HELD = 60 * 8 * 4  # bytes: the driver holds the 50 items, and not the 150 users
PATIENCE = 120  # seconds

DRIVER = """
import json, pathlib, sys
from tests.spark.sessions import Sessions
from tests.spark.training_data import read, sum_popular_items
from safecf.spark import SAFER2, training
import pytest

training.HELD = {held}
sum_popular_items(pytest.MonkeyPatch())
spark = Sessions().get("classic")
SAFER2(**json.loads(sys.argv[1])).fit(read(spark, pathlib.Path(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def frame(cluster, tmp_path_factory):
    return read(cluster, tmp_path_factory.mktemp("ratings"))


@pytest.fixture(scope="module")
def ids(frame):
    return orders(frame)


@pytest.fixture(scope="module")
def whole(frame, ids):
    """Return the factors of a training that nothing disturbs: those of one machine."""
    with pytest.MonkeyPatch.context() as patch:
        sum_popular_items(patch)
        patch.setattr(training, "HELD", HELD)
        model = SAFER2(**PARAMS).fit(frame)
    assert_close(model, fit_locally(SAFER2(**PARAMS)._unfitted(), ratings(), ids), ids)
    return np.vstack(factors(model, ids))


def executors(application):
    """Return the ids of the processes that work for an application."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            works = any("CoarseGrainedExecutorBackend" in word for word in command)
            if works and application in command:
                found.append(int(folder.name))
    return found


class KillOne(logging.Handler):
    """Kills an executor when the record of an epoch comes."""

    def __init__(self, application, epoch):
        super().__init__()
        self.application, self.epoch, self.killed = application, f"epoch {epoch}:", None

    def emit(self, record):
        if self.killed is None and record.getMessage().startswith(self.epoch):
            self.killed = executors(self.application)[0]
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds processes by /proc")
def test_an_executor_dies(cluster, frame, ids, whole, monkeypatch):
    monkeypatch.setattr(training, "HELD", HELD)
    sum_popular_items(monkeypatch)
    killer = KillOne(cluster.sparkContext.applicationId, 2)
    training.log.addHandler(killer)
    training.log.setLevel(logging.INFO)
    try:
        found = np.vstack(factors(SAFER2(**PARAMS).fit(frame), ids))
    finally:
        training.log.removeHandler(killer)
        training.log.setLevel(logging.NOTSET)
    assert killer.killed is not None
    np.testing.assert_array_equal(found, whole)


def test_the_driver_dies(frame, ids, whole, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(training, "HELD", HELD)
    sum_popular_items(monkeypatch)
    params = {**PARAMS, "checkpointDir": str(tmp_path), "checkpointInterval": 1}
    command = [sys.executable, "-c", DRIVER.format(held=HELD)]
    arguments = [json.dumps(params), str(tmp_path)]
    driver = subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while len(list(tmp_path.glob("*/*/record/_SUCCESS"))) < 2 and time.monotonic() < deadline:
            assert driver.poll() is None, "the driver ended by itself"
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    with caplog.at_level(logging.INFO, logger=training.log.name):
        found = SAFER2(**params).fit(frame)
    assert re.search(r"going on after epoch [1-3]", caplog.text)
    np.testing.assert_array_equal(np.vstack(factors(found, ids)), whole)
