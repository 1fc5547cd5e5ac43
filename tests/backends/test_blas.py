"""The limit on BLAS threads is set by the first thread in and lifted by the last one out."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from safecf.backends.blas import single_threaded_blas


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
