"""A small model's data, by ids of users that need escapes."""

import numpy as np
import scipy.sparse as sp

from safecf import Interactions
from safecf.batch import recommend_to_file

USERS = [f'user "{n}", \\ é' for n in range(30)]
ITEMS = np.arange(12) * 10 + 7
EMPTY = 4  # a user without interactions


def make_matrix():
    likes = np.random.default_rng(0).random((30, 12)) < 0.3
    likes[:, 0] |= ~likes.any(axis=1)
    likes[EMPTY] = False
    return sp.csr_matrix(likes, dtype=np.float32)


MATRIX = make_matrix()
DATA = Interactions.from_csr(MATRIX, USERS, ITEMS)


def write(model, path, user_items=DATA, **options):
    return recommend_to_file(model, path, user_items, show_progress=False, **options)
