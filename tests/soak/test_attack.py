"""The harness of the attacks sees what it has to see."""

import os
import signal
import time

import numpy as np
import pytest

from soak.attack import attack, try_cases


@attack("Only case 3 fails.", cases=9)
def one_fails(rng):
    assert rng.integers(2**62) != np.random.default_rng([0, 3]).integers(2**62), "this is case 3"
    return "fine"


@attack("Case 1 kills its process.", cases=3)
def killed(rng):
    if rng.integers(2**62) == np.random.default_rng([0, 1]).integers(2**62):
        os.kill(os.getpid(), signal.SIGKILL)
    return "fine"


@attack("No case takes long.", cases=1, seconds=0.05)
def slow(rng):
    time.sleep(10)
    return "fine"


@attack("No case hangs in native code.", cases=1, seconds=1)
def hanging(rng):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(60)
    return "fine"


@attack("No case needs much memory.", cases=1, memory=1 << 28)
def hungry(rng):
    return str(np.ones(2**30).sum())


@pytest.mark.parametrize("jobs", [1, 3])
def test_outcomes_and_failures_are_counted(jobs):
    result = try_cases(one_fails, range(6), jobs=jobs)
    assert result.outcomes == {"fine": 5}
    assert list(result.failures) == [3]
    assert "this is case 3" in result.failures[3]


def test_a_process_that_dies_fails_its_case_alone():
    result = try_cases(killed, range(4), jobs=2)
    assert result.outcomes == {"fine": 3}
    assert result.failures == {1: "the process died with -9"}


@pytest.mark.parametrize(("greedy", "problem"), [(slow, "TimeoutError"), (hungry, "MemoryError")])
def test_time_and_memory_are_limited(greedy, problem):
    assert problem in try_cases(greedy, range(1)).failures[0]


def test_a_process_that_hangs_is_killed(monkeypatch):
    monkeypatch.setattr("soak.attack.GRACE", 0.1)
    assert try_cases(hanging, range(1)).failures == {0: "the process died with -9"}


def test_cases_are_the_same_whoever_tries_them():
    assert one_fails.outcome(2) == "fine"
    with pytest.raises(AssertionError, match="this is case 3"):
        one_fails.outcome(3)
