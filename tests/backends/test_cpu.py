"""The native backend: rows that cannot be solved, instruction sets, and Ctrl-C."""

import signal
import threading

import numpy as np
import pytest

from safecf import _core
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends import make_backend
from safecf.backends.cpu import CpuBackend
from safecf.backends.numpy import NumpyBackend
from safecf.errors import SolveError
from tests.problems import matrix_of


def rows_without_ridge(num_rows=40):
    rng = np.random.default_rng(0)
    matrix = matrix_of([3] * num_rows, 10, rng)
    ones = np.ones(num_rows)
    return Rows(matrix, ones, np.ones(10), ones, np.zeros(num_rows))


@pytest.mark.parametrize("backend", [CpuBackend(), NumpyBackend()], ids=lambda b: b.name)
def test_a_singular_system_names_its_row_and_a_remedy(backend):
    y = np.zeros((10, 4), dtype=backend.dtype)
    y[:, 0] = 1
    factors = np.zeros((40, 4), dtype=backend.dtype)
    prepared = backend.fix(y, np.zeros((4, 4), dtype=backend.dtype))
    with pytest.raises(SolveError, match=r"row 0: .*raise regularization"):
        backend.solve_rows(rows_without_ridge(), prepared, factors, Exact())


def test_the_first_of_the_failing_rows_is_named():
    rows = rows_without_ridge()
    rows.ridge[:25] = 1.0
    y = np.ones((10, 4), dtype=np.float32)
    backend = CpuBackend(num_threads=3)
    prepared = backend.fix(y, np.zeros((4, 4), dtype=np.float32))
    with pytest.raises(SolveError, match="row 25"):
        backend.solve_rows(rows, prepared, np.zeros((40, 4), dtype=np.float32), Exact())


@pytest.mark.parametrize("solver", [Exact(), CG(), SpectralCG()], ids=str)
def test_factors_that_are_not_finite_are_an_error(solver):
    rows = rows_without_ridge()
    rows.ridge[:] = 1.0
    y = np.full((10, 4), 1e30, dtype=np.float32)
    backend = CpuBackend()
    prepared = backend.fix(y, np.zeros((4, 4), dtype=np.float32))
    with pytest.raises(SolveError, match="row 0"):
        backend.solve_rows(rows, prepared, np.zeros((40, 4), dtype=np.float32), solver)


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match="did you mean 'numpy'"):
        make_backend("numpi")


def test_auto_means_the_best_instruction_set():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 33)).astype(np.float32)
    best, auto, plain = (
        CpuBackend(isa=isa).gram(rows) for isa in (_core.isas()[0], "auto", "generic")
    )
    np.testing.assert_array_equal(auto, best)
    if len(_core.isas()) > 1:
        assert (auto != plain).any()


def test_native_work_can_be_interrupted():
    """Ctrl-C during a call that would run for minutes: the call ends at once."""
    count, factors = 64_000, 512
    rng = np.random.default_rng(0)
    rows = matrix_of([200] * 64, 2000, rng)
    big = type(rows)(
        np.arange(count + 1, dtype=np.int64) * 200,
        np.tile(rows.indices, count // 64),
        None,
        (count, 2000),
    )
    y = rng.normal(size=(2000, factors)).astype(np.float32)
    backend = CpuBackend(num_threads=2)
    ones = np.ones(count)
    systems = Rows(big, ones, np.ones(2000), ones, ones)
    prepared = backend.fix(y, backend.gram(y))
    out = np.zeros((count, factors), dtype=np.float32)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    # a process that was started in the background ignores the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            backend.solve_rows(systems, prepared, out, Exact())
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert not out[-1].any()  # the last rows were never reached


@pytest.mark.parametrize("isa", _core.isas())
@pytest.mark.parametrize(("rows", "factors"), [(1, 33), (31, 1), (500, 64), (2100, 31), (33, 520)])
def test_rough_products_are_good_to_four_digits(isa, rows, factors):
    """Each product of two numbers may be off by 2^-16 of it, on top of float32."""
    rng = np.random.default_rng(0)
    run = _core.Execution(2, isa)
    left = (rng.standard_normal((rows, factors)) * rng.lognormal(0, 2, factors)).astype(np.float32)
    right = rng.standard_normal((factors, factors)).astype(np.float32)
    weight = rng.random(rows, dtype=np.float32)

    gram = np.empty((factors, factors), dtype=np.float32)
    _core.gram(left, weight, gram, run, rough=True)
    wide = left.astype(np.float64)
    bound = np.abs(wide).T @ (weight[:, None] * np.abs(wide))
    assert (np.abs(gram - wide.T @ (weight[:, None] * wide)) <= 2.0**-14 * bound).all()

    padded = -(-factors // 16) * 16
    rotated = np.empty((rows, padded), dtype=np.float32)
    _core.rotate(left, 0, right, rotated, run, rough=True)
    bound = np.abs(wide) @ np.abs(right)
    assert (np.abs(rotated[:, :factors] - wide @ right) <= 2.0**-14 * bound).all()
    assert not rotated[:, factors:].any()
    in_place = left.copy()
    _core.rotate(in_place, 0, right, in_place, _core.Execution(1, isa), rough=True)
    np.testing.assert_array_equal(in_place, rotated[:, :factors])
