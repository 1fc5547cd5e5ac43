"""The native core's threads: forked processes, callers at the same time, and the end."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import SAFER2

# Python 3.12 warns of forks in processes that have threads.
FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
MATRIX = sp.random(300, 80, 0.1, "csr", dtype=np.float32, random_state=0)


def trained(seed=0, num_threads=2):
    model = SAFER2(8, iterations=3, random_state=seed, num_threads=num_threads)
    model.fit(MATRIX, show_progress=False)
    return model.item_factors


def child_that_trains(expected):
    """Fork; the child ends with 0 if it finds what is expected."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if np.array_equal(trained(), expected) else 2
        finally:
            os._exit(code)
    return child


def exit_code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@FORKS
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here"
)
def test_forked_workers_train():
    expected = [trained(seed) for seed in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(trained, range(4))
    np.testing.assert_array_equal(found, expected)


def test_threads_that_train_at_once_find_what_each_finds_alone():
    expected = [trained(seed) for seed in range(4)]
    found = {}

    def work(seed):
        for _ in range(3):
            found[seed] = trained(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal([found[seed] for seed in range(4)], expected)


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)", "os.fork()"])
def test_the_interpreter_ends_while_threads_sleep(end):
    program = f"""
import os, sys, threading, numpy as np
from safecf import _core
def work():
    rows = np.ones((100_000, 64), np.float32)
    _core.gram(rows, None, np.empty((64, 64), np.float32), _core.Execution(4))
work()
other = threading.Thread(target=work)
other.start()
other.join()
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 0


def test_a_search_may_run_in_a_signal_handler():
    """The check for Ctrl-C runs Python code, and that may call the core again."""
    program = """
import signal, sys, threading, numpy as np
from safecf import _core
rows, execution = np.ones((400_000, 64), np.float32), _core.Execution(2)
catalogue = _core.Catalogue(rows[:5000], execution)
calls = []
def handler(*_):
    ids, scores = np.empty((40, 2), np.int32), np.empty((40, 2), np.float32)
    catalogue.search(rows[:40], None, None, ids, scores, execution)
    calls.append(int(scores[0, 0]))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
gram = np.empty((64, 64), np.float32)
while len(calls) < 5:
    _core.gram(rows, None, gram, execution)
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(0 if set(calls) == {64} and (gram == 400_000).all() else 1)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("num_threads", [2])
def test_daemon_threads_in_the_core_do_not_disturb_the_end(num_threads):
    """Python ends daemon threads that want the GIL back during its finalisation."""
    program = f"""
import threading, time, numpy as np
from safecf import _core
inside = threading.Barrier(4)
def work():
    rows, execution = np.ones((50_000, 64), np.float32), _core.Execution({num_threads})
    inside.wait()
    while True:
        _core.gram(rows, None, np.empty((64, 64), np.float32), execution)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
inside.wait()
time.sleep(0.2)
"""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program], timeout=60, check=False, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")


@FORKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_callback_may_fork():
    expected, children = trained(), []
    model = SAFER2(8, iterations=3, random_state=0, num_threads=2)
    model.fit(
        MATRIX,
        show_progress=False,
        callback=lambda *_: children.append(child_that_trains(expected)),
    )
    assert [exit_code(child) for child in children] == [0, 0, 0]
    np.testing.assert_array_equal(model.item_factors, expected)


def test_ctrl_c_is_for_the_main_thread():
    """It ends a loop of the main thread, and does not disturb one of another thread."""
    program = """
import signal, sys, threading, numpy as np
from safecf import _core
rows, execution = np.ones((400_000, 64), np.float32), _core.Execution(2)
gram = np.empty((64, 64), np.float32)
def work():
    for _ in range(20):
        _core.gram(rows, None, np.empty((64, 64), np.float32), execution)
    finished.append(True)
finished = []
other = threading.Thread(target=work)
other.start()
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    while True:
        _core.gram(rows, None, gram, execution)
except KeyboardInterrupt:
    other.join()
    sys.exit(0 if finished else 1)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 0
