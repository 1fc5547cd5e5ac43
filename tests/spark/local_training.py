"""`train` by the local model on collected data, for tests of what stands around training."""

import numpy as np

from safecf import Interactions
from safecf.models import stored
from safecf.spark.local import tables_of
from safecf.spark.training import Trained


def train(local, ratings, options):
    """Fit the local model; the order of users and items is that of their ids."""
    data = ratings.orderBy("user", "item").toArrow()
    names = {"user": "user", "item": "item", "weight": "confidence"}
    local.num_threads = 1
    local.fit(Interactions.from_frame(data, **names), show_progress=False)
    fitted, _ = stored.pack(local)
    users, items = tables_of(local, ratings.sparkSession)
    return Trained(users, items, fitted)


def sample(users=40, items=25, seed=0):
    """Return (user, item, rating) rows, at least two per user."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        liked = rng.choice(items, rng.integers(2, 9), replace=False)
        rows += [(100 + user, 7 * int(item), float(rng.integers(1, 5))) for item in sorted(liked)]
    return rows
