"""What the tests of training share: data, and a backend that is interrupted."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.backends import BACKENDS, find_backend
from tests.models.runs import make


@pytest.fixture
def data():
    rng = np.random.default_rng(11)
    likes = rng.random((30, 20)) < 0.3
    return sp.csr_matrix(likes * rng.choice([1, 2], size=likes.shape), dtype=np.float32)


class Interrupting(find_backend("numpy")):
    """Raise at the chosen calls of solve_rows; two of them are one epoch."""

    def __init__(self, error, calls):
        super().__init__()
        self.error, self.calls, self.count = error, calls, 0

    def solve_rows(self, rows, fixed, factors, solver):
        self.count += 1
        if self.count in self.calls:
            factors[: len(factors) // 2] = np.nan
            raise self.error
        return super().solve_rows(rows, fixed, factors, solver)


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function that makes a model whose training is interrupted."""

    def build(*calls, error=KeyboardInterrupt, **options):
        backend = Interrupting(error, calls)
        monkeypatch.setitem(BACKENDS, "interrupting", lambda num_threads: backend)
        return make(backend="interrupting", **options)

    return build
