"""Spark sessions for the tests: one lives at a time, and another kind replaces it."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings

import pytest

MASTERS = {"classic": "local[2]", "connect": "local[2]", "cluster": "local-cluster[2,1,2048]"}
OPTIONS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # tiny data: compiling takes longer than running
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def missing() -> str | None:
    """Say what Spark needs and does not find here, or None."""
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError:
        return "no pyspark: pip install 'pyspark[connect]'"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return "no Java: Spark needs version 17 or later"
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = int(text.partition('"')[2].partition(".")[0] or 0)
    return None if version >= 17 else f"Java {version}: Spark needs version 17 or later"


class Sessions:
    """The session of the process."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.session = self.port_lock = None
        self.folder = tempfile.mkdtemp(prefix="safecf-spark-")

    def get(self, kind: str):
        """Return a session of that kind, after the end of one of another kind."""
        if self.kind != kind:
            self.stop()
            self.session, self.kind = self._start(kind), kind
        return self.session

    def _start(self, kind: str):
        lacking = missing()
        if lacking is not None:
            pytest.skip(lacking)
        from pyspark.sql import SparkSession  # noqa: PLC0415

        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        builder = SparkSession.builder.config(map=OPTIONS)
        builder = builder.config("spark.sql.warehouse.dir", self.folder)
        if kind == "connect":
            self.port_lock = _lock_port()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of options that are set already
                return builder.remote(MASTERS[kind]).getOrCreate()
        return builder.master(MASTERS[kind]).getOrCreate()

    def stop(self) -> None:
        """End the session, if there is one."""
        if self.session is not None:
            self.session.stop()
        if self.port_lock is not None:
            self.port_lock.close()
            self.port_lock = None
        self.session = self.kind = None


def _lock_port():
    """Wait until no other process of the tests has a server of Spark Connect: all use one port."""
    import fcntl  # noqa: PLC0415 - not on Windows

    path = os.path.join(tempfile.gettempdir(), "safecf-spark-connect.lock")
    file = open(path, "w")  # noqa: SIM115 - closed by `stop`
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


SESSIONS = Sessions()  # of the process: whoever starts one ends the others
