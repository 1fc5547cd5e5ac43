"""Fixtures of Spark sessions; a test file uses one kind of them."""

import shutil

import pytest

from tests.spark.sessions import SESSIONS


@pytest.fixture(scope="session")
def sessions():
    """Return what starts and ends sessions."""
    yield SESSIONS
    SESSIONS.stop()
    shutil.rmtree(SESSIONS.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def spark(sessions):
    """Return a session in this process, with two threads."""
    return sessions.get("classic")


@pytest.fixture(scope="module")
def connect(sessions):
    """Return a session of a Spark Connect server."""
    yield sessions.get("connect")
    sessions.stop()  # so that another process can have one


@pytest.fixture(scope="module")
def cluster(sessions):
    """Return a session with two executors of their own."""
    return sessions.get("cluster")
