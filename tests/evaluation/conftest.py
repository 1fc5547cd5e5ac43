"""A small split, and evaluations with given scores."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.evaluation import Evaluation, UserProfile
from safecf.split import HeldOut, Split

USERS, ITEMS = 60, 40


def binary(dense):
    return sp.csr_matrix(np.asarray(dense, dtype=np.float32))


@pytest.fixture(scope="session")
def split():
    """Return a split whose last test user has nothing held out, and the one before no history."""
    rng = np.random.default_rng(11)
    likes = rng.random((USERS, ITEMS)) < 1.2 / np.arange(2, ITEMS + 2) + 0.05
    likes[:, :2] |= ~likes.any(axis=1)[:, None]
    hidden = rng.random(likes.shape) < 0.3
    history, target = likes & ~hidden, likes & hidden
    target[:, 5] |= ~history[:, 5] & ~target.any(axis=1)
    target[-1], history[-2] = False, False
    target[-2, 3] = True
    return Split(
        train=binary(likes[:30]),
        validation=HeldOut(binary(history[30:40]), binary(target[30:40])),
        test=HeldOut(binary(history[40:]), binary(target[40:])),
        item_ids=np.arange(ITEMS),
        user_ids=np.arange(USERS),
    )


@pytest.fixture(scope="session")
def made_up():
    """Return a function that makes an evaluation from the scores of one metric."""

    def make(name, scores, *, metric="recall@20", group=None, ids=None, data="same", **others):
        values = np.asarray(scores, dtype=np.float64)
        counts = np.where(np.isnan(values), 0, 3)
        return Evaluation(
            model=name,
            scores={metric: values},
            k=(20,),
            tails=(0.1, 0.3, 1.0),
            users=UserProfile(
                np.arange(values.size), counts, np.linspace(0, 1, values.size), group, ids
            ),
            **{"catalogue": {}, "training": {}, "losses": None, "versions": {}, "data": data}
            | others,
        )

    return make
