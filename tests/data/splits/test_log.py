"""`Log`: reading, merging, and splits by the original ids."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import Interactions, datasets
from safecf.split import per_user_holdout, repeated_strong_generalization, temporal
from tests.data.rows import entries
from tests.helpers import refused

TEXT = """user,item,plays,when,team
bob,x,2,2024-01-04,red
ann,x,1,2024-01-02,blue
bob,y,0,2024-01-03,red
bob,x,5,2024-01-01,red
ann,y,3,2024-01-05,blue
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.csv").write_text(TEXT)
    return datasets.read(tmp_path, weight="plays", timestamp="when", group="team")


@pytest.fixture
def large():
    """Return a log of 60 users named u00 to u59, whose labels are their parity."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((60, 30)) < 0.4)
    order = rng.permutation(users.size)
    users, items = users[order].astype(np.int32), items[order].astype(np.int32)
    names = np.array([f"u{user:02}" for user in range(60)], dtype=object)
    weights = rng.integers(1, 9, users.size).astype(np.float32)
    times = rng.integers(10**9, size=users.size).astype("datetime64[s]").astype("datetime64[us]")
    items_named = np.arange(30) * 10
    return datasets.Log(
        users, items, names, items_named, None, weights, times, np.arange(60) % 2
    )  # fmt: skip


def test_weights_times_and_groups_are_read(log):
    assert log.weights.tolist() == [2, 1, 0, 5, 3]
    assert log.ratings is None
    assert log.timestamps[0] == np.datetime64("2024-01-04")
    assert log.groups.tolist() == ["blue", "red"]
    assert repr(log).endswith("2 items, weights, timestamps, groups)")
    assert entries(log.interactions(weighted=True)) == {
        ("bob", "x"): 7, ("ann", "x"): 1, ("ann", "y"): 3,
    }  # fmt: skip


def test_only_text_files_have_integers_in_text(tmp_path):
    """A Parquet file says what its ids are, also where all strings look like integers."""
    rows = {"user": ["7", "42"], "item": [7, 42]}
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("user,item\n7,7\n42,42\n")
    log = datasets.read(tmp_path / "log.parquet")
    assert (log.user_ids.tolist(), log.item_ids.tolist()) == (["42", "7"], [7, 42])
    log = datasets.read(tmp_path / "log.csv")
    assert (log.user_ids.tolist(), log.item_ids.tolist()) == ([7, 42], [7, 42])
    rows["item"] = ["x", "y"]
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "log.parquet")
    log = datasets.read(tmp_path)  # both
    assert log.user_ids.tolist() == ["42", "7"]


@pytest.mark.parametrize(("way", "weight"), [("sum", 7), ("max", 5), ("first", 2), ("last", 5)])
def test_merged_keeps_the_first_row_and_the_earliest_time(log, way, weight):
    merged = log.merged(way)
    assert merged.user_ids[merged.users].tolist() == ["bob", "ann", "ann"]
    assert merged.item_ids[merged.items].tolist() == ["x", "x", "y"]
    assert merged.weights.tolist() == [weight, 1, 3]
    days = ["2024-01-01", "2024-01-02", "2024-01-05"]
    assert merged.timestamps.astype("datetime64[D]").astype(str).tolist() == days


def test_what_a_log_cannot_do_is_refused(log, large, tmp_path):
    bare = datasets.Log(large.users, large.items, large.user_ids, large.item_ids)
    (tmp_path / "log.csv").write_text("user,item,team\na,1,red\nb,1,red\na,2,blue\n")
    for act, words in (
        (lambda: log.merged("error"), "1 rows repeat an earlier one, such as user 'bob' with"),
        (lambda: log.merged("mean"), "unknown way to treat duplicates 'mean'"),
        (bare.temporal, "the log has no times; read it with timestamp="),
        (lambda: bare.strong_generalization(weighted=True), "no weights; read it with weight="),
        (lambda: datasets.read(tmp_path, group="team"), "user 'a' has more than one group; give"),
    ):
        with refused(ValueError, words):
            act()


def labels_follow(split):
    """Assert that labels are the parity of the users' names."""
    begin = split.train.shape[0]
    for held_out in (split.validation, split.test):
        names = split.user_ids[begin : begin + held_out.target.shape[0]]
        assert held_out.groups.tolist() == [int(name[1:]) % 2 for name in names]
        begin += names.size


def matrices(split):
    return [
        split.train,
        *(getattr(part, side) for part in (split.validation, split.test)
          for side in ("history", "target")),
    ]  # fmt: skip


def weights_follow(split, log):
    """Assert that every entry has the weight of its pair in the log."""
    pairs = zip(log.user_ids[log.users], log.item_ids[log.items].tolist(), strict=True)
    weight = dict(zip(pairs, log.weights.tolist(), strict=True))
    training = split.user_ids[: split.train.shape[0]]
    found = Interactions.from_csr(split.train, training, split.item_ids)
    assert entries(found) == {pair: weight[pair] for pair in entries(found)}


def test_strong_generalization_by_ids(large):
    split = large.strong_generalization(weighted=True)
    assert split.test.target.shape[0] == split.validation.target.shape[0] == 6
    assert all(isinstance(user, str) for user in split.user_ids)
    labels_follow(split)
    weights_follow(split, large)
    plain = large.strong_generalization(heldout=6)
    assert all((matrix.data == 1).all() for matrix in matrices(plain))
    for ours, theirs in zip(matrices(split), matrices(plain), strict=True):
        np.testing.assert_array_equal(ours.indices, theirs.indices)
    training = split.training
    assert training.user_ids.tolist() == split.user_ids[:48].tolist()
    assert training.item_ids.tolist() == split.item_ids.tolist()


def test_repeated_splits_by_ids(large):
    ours = list(large.repeated_strong_generalization(heldout=6, repeats=3))
    theirs = repeated_strong_generalization(large.users, large.items, heldout=6, repeats=3)
    for split, expected in zip(ours, theirs, strict=True):
        assert split.user_ids.tolist() == large.user_ids[expected.user_ids].tolist()
        labels_follow(split)


def test_holdout_by_ids(large):
    split = large.per_user_holdout(weighted=True, share=0.3, seed=5)
    expected = per_user_holdout(large.interactions(weighted=True), share=0.3, seed=5)
    assert split.user_ids.tolist() == expected.user_ids.tolist()
    for ours, theirs in zip(matrices(split), matrices(expected), strict=True):
        assert (ours != theirs).nnz == 0
    labels_follow(split)


def test_temporal_by_ids(large):
    cutoff = "1990-01-01"
    split = large.temporal(weighted=True, cutoff=cutoff)
    expected = temporal(large.users, large.items, large.timestamps, cutoff=cutoff)
    assert split.user_ids.tolist() == large.user_ids[expected.user_ids].tolist()
    labels_follow(split)
    weights_follow(split, large)


def test_a_log_and_a_split_can_only_be_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,w\n" + "".join(f"{u},{i},2\n" for u in range(9) for i in range(6)))
    log = datasets.read(path, weight="w")
    split = log.strong_generalization(heldout=2)
    for each in (log, pickle.loads(pickle.dumps(log))):
        for name in ("users", "items", "user_ids", "item_ids", "weights"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, name)[:] = 0
    for name in ("user_ids", "item_ids"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(split, name)[:] = 0
    split.train.data[:] = 5  # the caller's to change
    assert split.training.users.weights.tolist() == [5.0] * split.train.nnz
    split.train.indices[:] = 2**31 - 1
    with pytest.raises(ValueError, match="holds column 2147483647, outside of 0 to 5"):
        _ = split.training
