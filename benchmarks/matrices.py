"""Synthetic matrices with the shapes of the paper's data sets, for measuring time."""

import numpy as np
import scipy.sparse

SHAPES = {
    "ml-20m": (116_677, 20_108, 8_300_000),
    "msd": (471_355, 41_140, 27_000_000),
}


def long_tailed(
    num_users: int, num_items: int, interactions: int, seed: int = 0
) -> scipy.sparse.csr_matrix:
    """Log-normal activity, Zipf-like popularity, items in random order; about `interactions`.

    Times depend on how long the rows are and on how the columns are spread, not on taste.
    """
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 1.0, num_users)
    lengths = np.maximum(activity * (interactions / activity.sum()), 5)
    popularity = 1.0 / (np.arange(num_items) + num_items / 100)
    popularity = rng.permutation(popularity / popularity.sum())
    rows, columns = [], []
    for first in range(0, num_users, 10_000):
        # the 10 000 users at a time bound the memory
        part = lengths[first : first + 10_000]
        drawn = rng.poisson(part * 1.25).clip(5, num_items // 2)
        rows.append(np.repeat(np.arange(first, first + len(part), dtype=np.int32), drawn))
        columns.append(rng.choice(num_items, drawn.sum(), p=popularity).astype(np.int32))
    user, item = np.concatenate(rows), np.concatenate(columns)
    pairs = np.unique(user.astype(np.int64) * num_items + item)
    if len(pairs) > interactions:
        pairs = np.sort(rng.choice(pairs, interactions, replace=False))
    user, item = np.divmod(pairs, num_items)
    ones = np.ones(len(pairs), dtype=np.float32)
    return scipy.sparse.csr_matrix((ones, (user, item)), shape=(num_users, num_items))
