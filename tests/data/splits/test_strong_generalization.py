"""The split is the paper's, byte for byte, and leaks nothing."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf import ParameterWarning, datasets
from safecf.data.splits.split_files import write_split
from safecf.split import repeated_seeds, repeated_strong_generalization, strong_generalization

# Of the files that the code of Liang et al. writes.
ML1M_SUMS = {
    "train.csv": "5e9f12657a6492112511603426d999f64905e940e5b2be5b4af978bc46a443ec",
    "validation_tr.csv": "f701265f3f0ba6245c187e3ef23c36d7e9ba2e8c85e9a405b8533285c90c8c24",
    "validation_te.csv": "8e2d06d4359fbd47ea23124b9845fa29d8d739b6a56c01f9c5fa8a0b146879f4",
    "test_tr.csv": "9bbc3f35a1fbe0cf63e3751c0b9b941bd6c79bf54192eaed35d4df4a8095a6c4",
    "test_te.csv": "4ccd72972227549c0e4cf334b04b52db115ef84432aa88ba9a3fa09bf08f9577",
    "unique_sid.txt": "b6b0f586dbe7c38b1344aebfd3e8c3a8c69b0044441d8812a7c521da0b418d12",
}


def test_ml1m_is_split_as_in_the_paper(real_data, tmp_path):
    log = datasets.load("ml-1m", real_data)
    write_split(log.strong_generalization(heldout=1000), log, tmp_path / "split")
    files = {name: (tmp_path / "split" / name).read_bytes() for name in ML1M_SUMS}
    assert {name: hashlib.sha256(files[name]).hexdigest() for name in files} == ML1M_SUMS


def random_interactions(seed, num_users=40, num_items=25, density=0.3):
    """Return pairs in random order, with ids that have gaps; nearly nobody has some items."""
    rng = np.random.default_rng(seed)
    popularity = density * np.linspace(0.1, 1.9, num_items)
    users, items = np.nonzero(rng.random((num_users, num_items)) < popularity)
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
    options = {"min_interactions": min_interactions, "holdout_share": share, "seed": split_seed}
    groups = np.unique(users) * 10
    split = strong_generalization(users, items, heldout=heldout, groups=groups, **options)
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
        known_users = split.user_ids[begin : begin + heldout]
        np.testing.assert_array_equal(held_out.groups, known_users * 10)
        for row in range(heldout):
            history, target = items_of(held_out.history, row), items_of(held_out.target, row)
            known = set(histories[split.user_ids[begin + row]]) & set(split.item_ids.tolist())
            assert history | target == known
            assert not history & target
            assert len(target) == (int(share * len(known)) if len(known) >= 5 else 0)
    parts = [split.train, split.validation.history, split.validation.target]
    parts += [split.test.history, split.test.target]
    assert all((matrix.data == 1).all() for matrix in parts)
    total = sum(len(histories[user]) for user in kept)
    assert sum(matrix.nnz for matrix in parts) + split.dropped == total


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


def test_only_the_seed_decides():
    users, items = random_interactions(5)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    splits = [strong_generalization(users, items, heldout=5, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(splits[0].user_ids, splits[1].user_ids)
    assert (splits[0].test.target != splits[1].test.target).nnz == 0
    assert not np.array_equal(splits[0].user_ids, splits[2].user_ids)


def test_repeated_interactions_cannot_leak():
    users, items = random_interactions(6)
    expected = strong_generalization(users, items, heldout=5)
    twice = np.append(users, users[:30]), np.append(items, items[:30])
    with pytest.warns(ParameterWarning, match="30 interactions repeat an earlier one"):
        split = strong_generalization(*twice, heldout=5)
    with pytest.warns(ParameterWarning, match="30 interactions repeat") as caught:
        assert len(list(repeated_strong_generalization(*twice, heldout=5, repeats=3))) == 3
    assert len(caught) == 1
    np.testing.assert_array_equal(split.item_ids, expected.item_ids)
    assert (split.train != expected.train).nnz == 0
    assert (split.test.history != expected.test.history).nnz == 0
    assert (split.test.target != expected.test.target).nnz == 0


def test_repeated_splits_have_the_paper_s_seeds():
    users, items = random_interactions(10)
    labels = np.unique(users) % 3
    splits = list(repeated_strong_generalization(users, items, heldout=5, groups=labels))
    assert len(splits) == 50
    for seed, split in zip(repeated_seeds(3), splits, strict=False):
        expected = strong_generalization(users, items, heldout=5, seed=seed, groups=labels)
        np.testing.assert_array_equal(split.user_ids, expected.user_ids)
        assert (split.test.target != expected.test.target).nnz == 0
        np.testing.assert_array_equal(split.test.groups, expected.test.groups)
    assert len({tuple(split.user_ids.tolist()) for split in splits}) == 50
    fewer = list(repeated_strong_generalization(users, items, heldout=5, repeats=2))
    np.testing.assert_array_equal(fewer[1].user_ids, splits[1].user_ids)
