"""The models that the contract is asked of: `name` is every class, `family` one of each kind.

Each class runs on its default backend; that all backends answer alike is asked in tests/agreement.
"""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.models import MODELS

# Whose checks, partial fits and files are other code: factors by rows, item weights, a network.
FAMILIES = ("SAFER2", "EASE", "MultVAE")
# Those with a loss, a risk and a solver; those that score by factors.
ALS = [name for name, kind in MODELS.items() if hasattr(kind, "compose")]
FACTORS = [name for name, kind in MODELS.items() if hasattr(kind, "fold_in")]

QUICK = {"factors": 4, "iterations": 3, "random_state": 3, "num_threads": 1, "device": "cpu"}
OWN = {
    "EASE": {"regularization": 0.5},
    "MultVAE": {"step_size": 0.03, "batch_size": 5, "beta": 0.01},
}
# Enough to learn the data.
LEARNED = {
    "CVaRMF": {"iterations": 300, "optimizer": "adam", "step_size": 0.03},
    "EASE": {},
    "MultVAE": {"iterations": 60},
}
LACKING = {} if find_spec("torch") else {"MultVAE": "MultVAE needs torch"}


def only(names):
    """Run a test for these models only: those that have what it is about."""
    return pytest.mark.only.with_args(*names)


def build(name, **options):
    """Return a model that trains quickly and repeatably."""
    known = MODELS[name]().get_params()
    return MODELS[name](
        **({k: v for k, v in QUICK.items() if k in known} | OWN.get(name, {}) | options)
    )


def fitted(model, matrix, **more):
    return model.fit(matrix, show_progress=False, **more)


def _board(size=20):
    """User u likes all items of the same parity, but for item u."""
    likes = np.indices((size, size)).sum(axis=0) % 2 == 0
    np.fill_diagonal(likes, False)
    return sp.csr_matrix(likes, dtype=np.float32)


def _some():
    """24 users, the 5th with no items, x 15 items, the 7th with no users; some weights."""
    rng = np.random.default_rng(7)
    likes = rng.random((24, 15)) < 0.3
    likes[:, 6] = likes[4] = False
    likes[likes.sum(axis=1) == 0, 0] = True
    likes[4] = False
    return sp.csr_matrix(likes * rng.choice([1, 2, 0.5], size=likes.shape), dtype=np.float32)


BOARD, SOME = _board(), _some()
EMPTY_USER, EMPTY_ITEM = 4, 6
# Original ids, in another order than the rows.
USERS = np.array([f"user-{n:02d}é" for n in range(24)][::-1], dtype=object)
ITEMS = np.arange(15) * 10 + 7


@cache
def learned(name, board=False):
    """Return a model that nobody may change, trained on SOME or on BOARD."""
    options = LEARNED.get(name, {"iterations": 8})
    return fitted(build(name, **options), BOARD if board else SOME)
