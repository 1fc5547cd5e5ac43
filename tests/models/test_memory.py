"""Training's peak memory stays within the formula of docs/memory.md."""

from pathlib import Path

import pytest

from benchmarks.memory import expected_bytes, rise

USERS, ITEMS, INTERACTIONS, FACTORS, THREADS = 20_000, 5_000, 4_000_000, 16, 2


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc"
)
@pytest.mark.parametrize("model", ["SAFER2", "SAFER2PP"])
def test_the_peak_of_training_is_that_of_the_formula(model):
    nnz, measured = rise(USERS, ITEMS, INTERACTIONS, FACTORS, THREADS, model)
    formula = expected_bytes(USERS, ITEMS, nnz, FACTORS, THREADS, blocks=model == "SAFER2PP")
    # one more array of 4 bytes per interaction would be over the limit
    assert measured < formula + 0.75 * 4 * nnz
    assert measured > 2 * 4 * nnz  # both directions at least
