"""Training's peak memory stays within the formula of docs/memory.md."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from safecf.datasets import synthetic
from safecf.free_memory import training_bytes

USERS, ITEMS, INTERACTIONS, FACTORS, THREADS = 20_000, 5_000, 4_000_000, 16, 2

# In a process of its own, where training cannot use memory again that was freed before.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np, scipy.sparse as sp
import safecf

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

make = lambda: getattr(safecf, sys.argv[1])({FACTORS}, iterations=2, num_threads={THREADS})
make().fit(sp.identity(50, format="csr", dtype="f4"), show_progress=False)  # loads all code
arrays = tuple(np.load(name + ".npy") for name in ("data", "indices", "indptr"))
matrix = sp.csr_matrix(arrays, shape=({USERS}, {ITEMS}), copy=False)
before = status("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
model = make().fit(matrix, show_progress=False)
print(status("VmHWM:") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc"
)
@pytest.mark.parametrize("model", ["SAFER2", "SAFER2PP"])
def test_the_peak_of_training_is_that_of_the_formula(tmp_path, model):
    matrix = synthetic(USERS, ITEMS, INTERACTIONS, exponent=1.0, shift=0.01).matrix
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
    program = PROGRAM
    for name in ("FACTORS", "THREADS", "USERS", "ITEMS"):
        program = program.replace(f"{{{name}}}", str(globals()[name]))
    command = [sys.executable, "-c", program, model]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    measured, blocks = int(done.stdout), model == "SAFER2PP"
    training = training_bytes(USERS, ITEMS, INTERACTIONS, FACTORS, THREADS, blocks=blocks)
    formula = 2 * 4 * INTERACTIONS + training  # both directions, and the rest
    # one more array of 4 bytes per interaction would be over the limit
    assert measured < formula + 0.75 * 4 * INTERACTIONS
    assert measured > 2 * 4 * INTERACTIONS  # both directions at least
