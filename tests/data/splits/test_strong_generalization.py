"""The split is the paper's, byte for byte, and leaks nothing."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf import ParameterWarning, datasets
from safecf.split import repeated_strong_generalization, strong_generalization
from tests.data.paper_files import ML1M_SUMS, files_of


def test_ml1m_is_split_as_in_the_paper(real_data):
    log = datasets.load("ml-1m", real_data)
    users, items = log.user_ids[log.users], log.item_ids[log.items]
    files = files_of(strong_generalization(users, items, heldout=1000), users, items)
    assert {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()} == (
        ML1M_SUMS
    )


def random_interactions(seed, num_users=40, num_items=25, density=0.3):
    """Return pairs in random order, with ids that have gaps."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((num_users, num_items)) < density)
    order = rng.permutation(users.size)
    return users[order] * 7 - 50, items[order] * 3 + 10


@given(
    seed=st.integers(0, 2**32 - 1),
    split_seed=st.integers(0, 2**32 - 1),
    heldout=st.integers(1, 8),
    min_interactions=st.integers(1, 6),
    share=st.sampled_from([0.2, 0.5, 0.9]),
)
def test_every_interaction_is_in_one_part(seed, split_seed, heldout, min_interactions, share):
    users, items = random_interactions(seed)
    split = strong_generalization(
        users,
        items,
        heldout=heldout,
        seed=split_seed,
        min_interactions=min_interactions,
        holdout_share=share,
    )
    histories = {}
    for user, item in zip(users.tolist(), items.tolist(), strict=True):
        histories.setdefault(user, []).append(item)
    kept = {user for user, history in histories.items() if len(history) >= min_interactions}
    assert sorted(split.user_ids.tolist()) == sorted(kept)

    num_train = len(kept) - 2 * heldout
    train_users = set(split.user_ids[:num_train].tolist())
    appearance = [
        i for u, i in zip(users.tolist(), items.tolist(), strict=True) if u in train_users
    ]
    assert split.item_ids.tolist() == list(dict.fromkeys(appearance))

    def items_of(matrix, row):
        return set(split.item_ids[matrix[row].indices].tolist())

    assert split.train.shape == (num_train, split.item_ids.size)
    for row in range(num_train):
        assert items_of(split.train, row) == set(histories[split.user_ids[row]])

    for held_out, begin in ((split.validation, num_train), (split.test, num_train + heldout)):
        assert held_out.history.shape == held_out.target.shape == (heldout, split.item_ids.size)
        for row in range(heldout):
            history, target = items_of(held_out.history, row), items_of(held_out.target, row)
            known = set(histories[split.user_ids[begin + row]]) & set(split.item_ids.tolist())
            assert history | target == known
            assert not history & target
            assert len(target) == (int(share * len(known)) if len(known) >= 5 else 0)
    for matrix in (split.train, split.validation.history, split.test.target):
        assert (matrix.data == 1).all()


def slow_split(users, items, heldout, seed):
    """Split as Liang et al. do, in original ids, drawing from the global generator."""
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    count = Counter(user for user, _ in pairs)
    pairs = [(user, item) for user, item in pairs if count[user] >= 5]
    ids = np.unique([user for user, _ in pairs])
    np.random.seed(seed)  # noqa: NPY002 - the legacy generator is what is reproduced
    ids = ids[np.random.permutation(ids.size)].tolist()  # noqa: NPY002
    train_users = set(ids[: -2 * heldout])
    train = [(user, item) for user, item in pairs if user in train_users]
    known = {item for _, item in train}

    def hide(held_out_users):
        history, target = set(), set()
        np.random.seed(seed)  # noqa: NPY002
        for user in sorted(held_out_users):
            group = [pair for pair in pairs if pair[0] == user and pair[1] in known]
            hidden = []
            if len(group) >= 5:
                size = int(0.2 * len(group))
                hidden = np.random.choice(len(group), size=size, replace=False)  # noqa: NPY002
            target |= {group[at] for at in hidden}
            history |= set(group) - target
        return history, target

    return [set(train), *hide(ids[-2 * heldout : -heldout]), *hide(ids[-heldout:])]


@pytest.mark.parametrize("seed", range(10))
def test_the_split_agrees_with_the_slow_twin(seed):
    users, items = random_interactions(seed, num_users=60)
    split = strong_generalization(users, items, heldout=15, seed=seed)
    state = np.random.get_state()  # noqa: NPY002
    expected = slow_split(users, items, heldout=15, seed=seed)
    np.random.set_state(state)  # noqa: NPY002

    def pairs(matrix, begin):
        rows, columns = matrix.nonzero()
        ids = split.user_ids[begin + rows].tolist(), split.item_ids[columns].tolist()
        return set(zip(*ids, strict=True))

    begin = split.train.shape[0]
    actual = [pairs(split.train, 0)]
    for held_out in (split.validation, split.test):
        actual += [pairs(held_out.history, begin), pairs(held_out.target, begin)]
        begin += 15
    assert actual == expected


def test_the_global_generator_is_not_used():
    users, items = random_interactions(4)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    strong_generalization(users, items, heldout=5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_another_seed_is_another_split():
    users, items = random_interactions(5)
    splits = [strong_generalization(users, items, heldout=5, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(splits[0].user_ids, splits[1].user_ids)
    assert (splits[0].test.target != splits[1].test.target).nnz == 0
    assert not np.array_equal(splits[0].user_ids, splits[2].user_ids)


def test_repeated_interactions_cannot_leak():
    users, items = random_interactions(6)
    expected = strong_generalization(users, items, heldout=5)
    twice = np.append(users, users[:30]), np.append(items, items[:30])
    with pytest.warns(ParameterWarning, match="30 interactions repeat an earlier one"):
        split = strong_generalization(*twice, heldout=5)
    np.testing.assert_array_equal(split.item_ids, expected.item_ids)
    assert (split.train != expected.train).nnz == 0
    assert (split.test.history != expected.test.history).nnz == 0
    assert (split.test.target != expected.test.target).nnz == 0


def test_labels_follow_their_users():
    users, items = random_interactions(8)
    options = {"heldout": 6, "min_interactions": 7}
    split = strong_generalization(users, items, groups=np.unique(users) * 10, **options)
    plain = strong_generalization(users, items, **options)
    begin = split.train.shape[0]
    assert begin + 12 < np.unique(users).size  # somebody is too rare
    for held_out in (split.validation, split.test):
        np.testing.assert_array_equal(held_out.groups, split.user_ids[begin : begin + 6] * 10)
        begin += 6
    assert plain.test.groups is None
    assert (split.test.target != plain.test.target).nnz == 0


def test_dropped_interactions_are_counted():
    users, items = random_interactions(9, num_items=60, density=0.12)
    split = strong_generalization(users, items, heldout=15, min_interactions=1)
    held_out = [split.validation.history, split.validation.target]
    held_out += [split.test.history, split.test.target]
    assert split.dropped > 0
    assert split.train.nnz + sum(part.nnz for part in held_out) + split.dropped == users.size


# RandomState(98765).randint(0, 100000000, size=50)[:3]
SEEDS = (59575795, 42706284, 49672109)


def test_repeated_splits_have_the_paper_s_seeds():
    users, items = random_interactions(10)
    labels = np.unique(users) % 3
    splits = list(repeated_strong_generalization(users, items, heldout=5, groups=labels))
    assert len(splits) == 50
    for seed, split in zip(SEEDS, splits, strict=False):
        expected = strong_generalization(users, items, heldout=5, seed=seed, groups=labels)
        np.testing.assert_array_equal(split.user_ids, expected.user_ids)
        assert (split.test.target != expected.test.target).nnz == 0
        np.testing.assert_array_equal(split.test.groups, expected.test.groups)
    assert len({tuple(split.user_ids.tolist()) for split in splits}) == 50
    fewer = list(repeated_strong_generalization(users, items, heldout=5, repeats=2))
    np.testing.assert_array_equal(fewer[1].user_ids, splits[1].user_ids)


def test_repeated_interactions_are_told_once():
    users, items = random_interactions(11)
    twice = np.append(users, users[0]), np.append(items, items[0])
    with pytest.warns(ParameterWarning, match="1 interactions repeat") as caught:
        splits = list(repeated_strong_generalization(*twice, heldout=5, repeats=3))
    assert len(splits) == 3
    assert len(caught) == 1
