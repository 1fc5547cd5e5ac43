"""Ratings for the tests of training, and the local model that Spark has to agree with."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from safecf.spark import blocks as spark_blocks
from safecf.spark import building, training

BLOCKS = 3, 2
D = 8


def ratings(users=150, items=50, pairs=2500, seed=0):
    """Return a table with texts and 64-bit ids, popular items, and pairs that occur twice."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, items + 1)
    user = rng.integers(0, users, pairs)
    item = rng.choice(items, pairs, p=popularity / popularity.sum())
    return pa.table(
        {
            "user": [f"user {each}" for each in user],
            "item": item.astype(np.int64) * 10**12,
            "rating": rng.integers(1, 4, pairs).astype(np.float32),
        }
    )


def read(spark, folder):
    """Return the ratings from a file, as most users have them: plans are short then."""
    path = folder / "ratings.parquet"
    pq.write_table(ratings(), path)
    return spark.read.parquet(str(path)).persist()


def options(where, monkeypatch, tmp_path):
    """Return the Params that bring the factors there."""
    params = {"numUserBlocks": BLOCKS[0], "numItemBlocks": BLOCKS[1], "rank": D, "seed": 5}
    if where == "users spread":
        monkeypatch.setattr(training, "HELD", 60 * D * 4)  # 50 items, 150 users
    elif where == "items spread":
        monkeypatch.setattr(training.Options, "holds", lambda self, factors, rows: (True, False))
    elif where == "spread":
        params |= {"broadcast": "never", "checkpointDir": str(tmp_path)}
    return params


def sum_popular_items(monkeypatch):
    """Make items hot from 16 users in a block on, and big from 100 ratings on."""
    monkeypatch.setattr(building, "HOT", 2)
    monkeypatch.setattr(building, "EQUATIONS", 0)
    monkeypatch.setattr(building, "BIG", 100)


def orders(frame, blocks=BLOCKS):
    """Return the ids of users and items in the order of blocks and positions."""
    found = []
    for name, count in zip(("user", "item"), blocks, strict=True):
        ids = frame.select(frame[name].alias("id"))
        table = spark_blocks._numbered(ids, count).toArrow()
        found.append(table.sort_by([("block", "ascending"), ("position", "ascending")])["id"])
    return [ids.to_pylist() for ids in found]


def fit_locally(model, table, ids):
    """Fit a local model on rows in the order in which Spark numbers them."""
    user, item = (
        [{each: place for place, each in enumerate(side)}[each] for each in table[name].to_pylist()]
        for name, side in zip(("user", "item"), ids, strict=True)
    )
    shape = tuple(len(side) for side in ids)
    rating = table["rating"].to_numpy()
    return model.fit(sp.coo_matrix((rating, (user, item)), shape).tocsr(), show_progress=False)


def factors(model, ids):
    """Return the factors of a model on Spark, users and items in this order."""
    sides = []
    for frame, order in zip((model.userFactors, model.itemFactors), ids, strict=True):
        table = frame.toArrow()
        rows = dict(zip(table["id"].to_pylist(), table["features"].to_pylist(), strict=True))
        sides.append(np.array([rows[each] for each in order]))
    return sides


def assert_close(model, local, ids, tolerance=1e-4):
    """Compare the factors of a model on Spark with those of a local one, |X Q - Z| / |Z|.

    Q is the rotation of both sides that brings the items closest: local training ends in an
    eigenbasis of its own.
    """
    users, items = factors(model, ids)
    left, _, right = np.linalg.svd(items.T @ local.item_factors)
    for found, expected in ((users, local.user_factors), (items, local.item_factors)):
        difference = found @ left @ right - expected
        assert np.linalg.norm(difference) <= tolerance * np.linalg.norm(expected)
