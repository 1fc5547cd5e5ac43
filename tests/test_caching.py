"""Attributes that are computed once."""

import os
import signal
import threading

import pytest

from safecf.caching import cached_property


class Slow:
    def __init__(self, value, started=None, go_on=None):
        self.value, self.started, self.go_on, self.calls = value, started, go_on, 0

    @cached_property
    def twice(self):
        """Two times the value."""
        self.calls += 1
        if self.started is not None:
            self.started.set()
            self.go_on.wait(30)
        return 2 * self.value


def test_it_is_computed_once_for_each_object():
    one, other = Slow(1), Slow(2)
    assert (one.twice, one.twice, other.twice) == (2, 2, 4)
    assert (one.calls, other.calls) == (1, 1)
    assert Slow.twice.__doc__ == "Two times the value."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not():
    started, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow(1, started, go_on).twice)
    thread.start()
    started.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends it if it waits
        os._exit(0 if Slow(3).twice == 6 else 1)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
