"""The limit on BLAS threads is set by the first thread in and lifted by the last one out."""

import threading

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info

from safecf.backends.blas import eigenbasis, single_threaded_blas


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_limit_holds_inside_and_is_lifted_outside():
    before = blas_threads()
    with single_threaded_blas(), single_threaded_blas():
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_it_is_lifted_after_an_error():
    before = blas_threads()
    with pytest.raises(KeyboardInterrupt), single_threaded_blas():
        raise KeyboardInterrupt
    assert blas_threads() == before


def test_threads_that_overlap_restore_what_was_there():
    before, held = blas_threads(), []
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first():
        with single_threaded_blas():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with single_threaded_blas():
            second_in.set()
            first_out.wait(10)
            held.extend(blas_threads())

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
    assert set(held) <= {1}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_below_the_rounding_are_raised_to_it(dtype):
    """A Gramian of rank 3, whose other eigenvalues come out around zero, and negative ones too."""
    factors = np.random.default_rng(0).normal(size=(3, 8)).astype(dtype)
    gram = factors.T @ factors
    with single_threaded_blas():
        lowest = scipy.linalg.eigh(np.float64(gram))[0][0]
    assert lowest < 0
    values, basis = eigenbasis(gram)
    assert values[0] == -lowest
    assert values[4] < np.finfo(dtype).eps * values[-1] < values[5]
    assert basis @ np.diag(values) @ basis.T == pytest.approx(factors.T @ factors, abs=1e-5)


def test_eigenvalues_above_the_rounding_keep_their_bits():
    factors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    gram = factors.T @ factors
    with single_threaded_blas():
        expected = scipy.linalg.eigh(np.float64(gram))[0]
    np.testing.assert_array_equal(eigenbasis(gram)[0], expected)
