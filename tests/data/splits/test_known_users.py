"""Splits of known users: parts do not overlap, and nothing leaks from the future."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from safecf import Interactions, ParameterWarning
from safecf.split import per_user_holdout, temporal


def pairs_of(matrix, user_ids, item_ids):
    rows, columns = matrix.nonzero()
    return set(zip(user_ids[rows].tolist(), item_ids[columns].tolist(), strict=True))


def parts_of(split):
    """Return train, and history and target of both held-out sets, as sets of original ids."""
    begin = split.train.shape[0]
    found = [pairs_of(split.train, split.user_ids[:begin], split.item_ids)]
    for held_out in (split.validation, split.test):
        end = begin + held_out.history.shape[0]
        ids = split.user_ids[begin:end]
        assert held_out.target.shape == held_out.history.shape == (ids.size, split.item_ids.size)
        assert held_out.target.getnnz(axis=1).all()
        assert held_out.history.getnnz(axis=1).all()
        found += [pairs_of(m, ids, split.item_ids) for m in (held_out.history, held_out.target)]
        begin = end
    assert begin == split.user_ids.size
    return found


def random_matrix(seed, users=40, items=25, density=0.3):
    rng = np.random.default_rng(seed)
    return scipy.sparse.csr_matrix((rng.random((users, items)) < density).astype(np.float32))


def random_log(seed, latest=1000):
    rng = np.random.default_rng(seed)
    users, items = random_matrix(seed, users=30, items=60).nonzero()
    order = rng.permutation(users.size)
    return users[order] * 3 - 20, items[order] * 2 + 7, rng.integers(latest, size=users.size)


def rows_of(pairs, users):
    return {pair for pair in pairs if pair[0] in users}


@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.2, 0.35, 0.6]),
    validation_share=st.sampled_from([0, 0.1, 0.3]),
    min_interactions=st.integers(1, 9),
)
def test_every_entry_is_in_one_part(seed, share, validation_share, min_interactions):
    matrix = random_matrix(seed)
    options = {"share": share, "validation_share": validation_share, "seed": seed}
    split = per_user_holdout(matrix, min_interactions=min_interactions, **options)
    train, history, validation, longer_history, test = parts_of(split)
    everything = pairs_of(matrix, np.arange(40), np.arange(25))
    assert train | validation | test <= everything
    assert len(train) + len(validation) + len(test) + split.dropped == len(everything)
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert history == rows_of(train, {user for user, _ in validation})
    assert longer_history == rows_of(train | validation, {user for user, _ in test})
    for user, length in enumerate(matrix.getnnz(axis=1)):
        hidden = [len(rows_of(part, {user})) for part in (test, validation)]
        wanted = [int(share * length), int(validation_share * length)]
        wanted = wanted if length >= min_interactions else [0, 0]
        assert all(got <= want for got, want in zip(hidden, wanted, strict=True))
        assert sum(wanted) - sum(hidden) <= split.dropped
        if not split.dropped:
            assert hidden == wanted


def test_ids_weights_and_labels_follow_their_users():
    matrix = random_matrix(2)
    matrix.data = np.arange(1, matrix.nnz + 1, dtype=np.float32)
    names = np.array([f"user {u}" for u in range(40)], dtype=object)
    labels = np.array([f"group of user {u}" for u in range(40)])
    given = Interactions.from_csr(matrix, user_ids=names, item_ids=np.arange(25) * 10)
    split = per_user_holdout(given, groups=labels)
    begin = split.train.shape[0]
    for held_out in (split.validation, split.test):
        ids = split.user_ids[begin : begin + held_out.target.shape[0]]
        assert held_out.groups.tolist() == [f"group of {name}" for name in ids]
        rows = [int(name.split()[1]) for name in ids]
        for part in (held_out.target, held_out.history):
            at = part.nonzero()
            np.testing.assert_array_equal(part[at], matrix[np.array(rows)[at[0]], at[1]])
        begin += len(ids)
    np.testing.assert_array_equal(split.item_ids, np.arange(25) * 10)


def test_another_seed_hides_other_entries():
    matrix = random_matrix(3)
    splits = [per_user_holdout(matrix, seed=seed) for seed in (1, 1, 2)]
    targets = [parts_of(split)[-1] for split in splits]
    assert targets[0] == targets[1] != targets[2]


def test_hidden_entries_are_uniform():
    matrix = scipy.sparse.csr_matrix(np.ones((5_000, 10), dtype=np.float32))
    target = per_user_holdout(matrix).test.target
    np.testing.assert_allclose(target.mean(axis=0).A1, 0.2, atol=0.025)


@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.1, 0.2, 0.5]),
    validation_share=st.sampled_from([0, 0.1, 0.3]),
    latest=st.sampled_from([10, 1000, 10**9]),
)
def test_nothing_comes_from_the_future(seed, share, validation_share, latest):
    users, items, times = random_log(seed, latest)
    options = {"share": share, "validation_share": validation_share}
    split = temporal(users, items, times, groups=np.unique(users) * 10, **options)
    train, history, validation, longer_history, test = parts_of(split)
    when = dict(zip(zip(users.tolist(), items.tolist(), strict=True), times.tolist(), strict=True))
    ages = [[when[pair] for pair in part] for part in (train, validation, test)]
    ages = [age for age in ages if age]
    for earlier, later in pairwise(ages):
        assert max(earlier) < min(later)
    assert len(train) + len(validation) + len(test) + split.dropped == users.size
    assert history == rows_of(train, {user for user, _ in validation})
    assert longer_history == rows_of(train | validation, {user for user, _ in test})
    known_users, known_items = ({pair[side] for pair in train} for side in (0, 1))
    for pair in set(when) - train - validation - test:
        assert pair[0] not in known_users or pair[1] not in known_items
        assert when[pair] > max(ages[0])
    assert np.mean(times > max(ages[0])) >= share + validation_share - 1e-9
    if latest == 10**9:  # hardly any equal times
        assert np.mean(times > max(ages[0])) == pytest.approx(share + validation_share, abs=0.02)
    assert split.item_ids.size == len(known_items)
    held_out = np.concatenate([split.validation.groups, split.test.groups])
    np.testing.assert_array_equal(held_out, split.user_ids[split.train.shape[0] :] * 10)


def test_a_cutoff_separates_before_from_after():
    users, items, times = random_log(4)
    split = temporal(users, items, times, cutoff=700, validation_share=0)
    train, *_, test = parts_of(split)
    early, late = times < 700, times >= 700
    assert train == set(zip(users[early].tolist(), items[early].tolist(), strict=True))
    assert test <= set(zip(users[late].tolist(), items[late].tolist(), strict=True))
    assert len(test) + split.dropped == late.sum()


def test_the_order_of_the_file_does_not_matter():
    users, items, times = random_log(5, latest=10**9)
    order = np.random.default_rng(0).permutation(users.size)
    split = temporal(users, items, times)
    shuffled = temporal(users[order], items[order], times[order])
    assert parts_of(shuffled) == parts_of(split)
    np.testing.assert_array_equal(shuffled.item_ids, split.item_ids)


def test_the_earliest_of_repeated_pairs_is_kept():
    users, items, times = random_log(6)
    expected = temporal(users, items, times)
    twice = [np.concatenate([side[:50], side]) for side in (users, items)]
    later = np.concatenate([times[:50] + 1000, times])
    with pytest.warns(ParameterWarning, match="50 interactions repeat an earlier one"):
        split = temporal(*twice, later)
    assert parts_of(split) == parts_of(expected)


def test_every_format_of_a_cutoff():
    users, items, times = random_log(12, latest=10**9)
    moment = np.datetime64("1990-01-01", "s")
    expected = parts_of(temporal(users, items, times, cutoff=int(moment.astype(int))))
    dates = times.astype("datetime64[s]")
    for written in (times, dates, dates.astype(str), dates.astype(object)):
        for cutoff in ("1990-01-01", moment, moment.item(), "1990-01-01T01:00:00+01:00"):
            assert parts_of(temporal(users, items, written, cutoff=cutoff)) == expected
