"""What must not matter, or must matter in a known way: all classes, relation by relation."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import Interactions, ParameterWarning
from tests.contract.subjects import (
    ALS,
    EMPTY_ITEM,
    EMPTY_USER,
    FACTORS,
    LEARNED,
    SOME,
    build,
    fitted,
    only,
)
from tests.helpers import state


def found_by(model):
    """All that training has found, which is the model without its options."""
    found = {k: v for k, v in state(model).items() if k not in {*model.get_params(), "history"}}
    assert any(isinstance(value, tuple) for value in found.values())
    return found, getattr(model, "history", None)


def shuffled(data):
    found = data.copy()
    for row in range(data.shape[0]):
        part = slice(*data.indptr[row : row + 2])
        found.indices[part], found.data[part] = data.indices[part][::-1], data.data[part][::-1]
    found.has_sorted_indices = False
    return found


def with_wide_indices(data):
    wide = data.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide


def with_explicit_zeros(data):
    filled = data.tolil()
    filled[EMPTY_USER, EMPTY_ITEM] = 99
    filled = filled.tocsr()
    filled.data[filled.data == 99] = 0
    return filled


def in_halves(data):
    twice = np.repeat(data.data / 2, 2), np.repeat(data.indices, 2), data.indptr * 2
    return sp.csr_matrix(twice, data.shape)


# Another form of the data: the same model, bit for bit, but some are told to be slow.
FORMS = {
    "csr_array": (sp.csr_array, None),
    "float64": (lambda data: data.astype(np.float64), None),
    "int64 indices": (with_wide_indices, None),
    "unsorted": (shuffled, None),
    "explicit zeros": (with_explicit_zeros, None),
    "Interactions": (Interactions.from_csr, None),
    "coo": (sp.coo_matrix, "tocsr"),
    "lil": (sp.lil_matrix, "tocsr"),
    "csc": (sp.csc_matrix, "tocsr"),
    "dok": (sp.dok_matrix, "tocsr"),
    "duplicates": (in_halves, "duplicate"),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_data_does_not_matter(make, name, form):
    change, warning = FORMS[form]
    model = make()
    with pytest.warns(ParameterWarning, match=warning) if warning else nullcontext():
        fitted(model, change(SOME))
    assert found_by(model) == found_by(fitted(make(), SOME))


def test_weights_count(make, name):
    both = [fitted(make(), data) for data in (SOME, (SOME > 0).astype(np.float32))]
    scores = [each.recommend([0, 1], SOME[:2], recalculate_user=True)[1] for each in both]
    assert not np.allclose(*scores, atol=1e-3)


NUMBERS = {"factors": np.int64(4), "regularization": np.float32(0.01), "num_threads": np.int8(2)}


def test_numpy_numbers_are_numbers(name):
    known = build(name).get_params()
    given = {key: value for key, value in NUMBERS.items() if key in known}
    plain = {key: value.item() for key, value in given.items()}
    one, other = (fitted(build(name, **each), SOME) for each in (given, plain))
    assert found_by(one) == found_by(other)


@pytest.mark.parametrize("num_threads", [0, 2, 3, 64])
@only([*ALS, "EASE"])  # torch promises nothing for another number of threads
def test_threads_change_no_bit(make, name, num_threads):
    one, many = fitted(make(), SOME), fitted(make(num_threads=num_threads), SOME)
    assert found_by(one) == found_by(many)
    users = np.arange(24)
    for mine, theirs in zip(one.recommend(users, SOME), many.recommend(users, SOME), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_refitting_starts_afresh(make, name):
    """Whatever was trained and asked before, for another size of the data or another option."""
    model, smaller = fitted(make(), SOME), SOME[:12, :9]
    model.similar_items(0)
    model.recommend(0, SOME[0], recalculate_user=True)
    assert found_by(fitted(model, smaller)) == found_by(fitted(make(), smaller))
    assert model.shape == (12, 9)
    assert model.similar_items(0, N=20)[0].max() < 9
    assert model.recommend(0, smaller[0], N=20, recalculate_user=True)[0].max() < 9
    if name in FACTORS:
        assert model.similar_users(0, N=20)[0].max() < 12
        assert np.isfinite(model.fold_in(smaller)).all()
        model.factors = 2
        assert fitted(model, SOME).item_factors.shape == (15, 2)


@only(FACTORS)
def test_the_seed_decides(make, name):
    one = fitted(make(), SOME)
    assert found_by(fitted(make(), SOME)) == found_by(one)
    other = fitted(make(random_state=4), SOME)
    assert not np.array_equal(other.item_factors, one.item_factors)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
@only(FACTORS)
def test_generators_are_seeds(make, family, kind):
    one, same = (fitted(make(random_state=kind(5)), SOME) for _ in range(2))
    assert found_by(same) == found_by(one)
    generator = kind(5)
    first, second = (fitted(make(random_state=generator), SOME) for _ in range(2))
    assert found_by(first) == found_by(one)
    assert first.seed != second.seed


@only(FACTORS)
def test_without_a_seed_runs_differ_but_can_be_repeated(make, family):
    one, other = (fitted(make(random_state=None), SOME) for _ in range(2))
    assert one.seed != other.seed
    assert found_by(fitted(make(random_state=one.seed), SOME)) == found_by(one)
    assert one.random_state is None


@only(ALS)
def test_empty_rows_change_nothing_for_the_others(make, name):
    """Up to the start, which is drawn for other rows then."""
    options = LEARNED.get(name, {"iterations": 30})
    users, items = np.delete(np.arange(24), EMPTY_USER), np.delete(np.arange(15), EMPTY_ITEM)
    whole, smaller = (make(**options) for _ in range(2))
    fitted(whole, SOME)
    fitted(smaller, SOME[users][:, items])
    assert whole.history[-1].objective == pytest.approx(smaller.history[-1].objective, rel=0.05)


@only(ALS)
def test_weights_of_one_change_nothing(make, name):
    one, other = fitted(make(), SOME, user_weight=np.ones(24)), fitted(make(), SOME)
    for array in ("user_factors", "item_factors", "user_weights", "user_counts"):
        np.testing.assert_array_equal(getattr(one, array), getattr(other, array))
    assert (one.history, one.num_users) == (other.history, other.num_users)


@pytest.mark.parametrize("kind", ["IALS", "ERMMF"])
def test_a_user_of_weight_two_is_two_users(kind):
    """Where the users' start does not matter: an exact solver, and no risk."""
    counts = np.arange(24) % 3
    one, other = (build(kind, solver="exact", iterations=8) for _ in range(2))
    fitted(one, SOME, user_weight=counts)
    fitted(other, SOME[np.repeat(np.arange(24), counts)])
    np.testing.assert_allclose(
        one.fold_in(SOME) @ one.item_factors.T,
        other.fold_in(SOME) @ other.item_factors.T,
        atol=1e-4,
    )
    for ours, theirs in zip(one.history, other.history, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)


def test_the_input_is_never_modified(make, name):
    for matrix in (SOME.copy(), shuffled(SOME), with_explicit_zeros(SOME)):
        parts = matrix.indptr, matrix.indices, matrix.data
        before = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = False
        model = fitted(make(), matrix)
        model.recommend(np.arange(24), matrix, recalculate_user=True, items=[1, 2])
        if name in FACTORS:
            model.partial_fit_users(np.arange(24), matrix)
        for old, new in zip(before, (matrix.indptr, matrix.indices, matrix.data), strict=True):
            np.testing.assert_array_equal(old, new)


# Answers


def test_known_and_new_users_are_the_same(model, name):
    stored = model.recommend(np.arange(24), SOME, N=6)
    recalculated = model.recommend(np.arange(24), SOME, N=6, recalculate_user=True)
    for one, other in zip(stored, recalculated, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_user_is_answered_the_same_alone_and_among_others(model, name):
    users = [3, 0, 3]
    ids, scores = model.recommend(users, SOME[users], N=4)
    assert ids.shape == scores.shape == (3, 4)
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    for row, user in enumerate(users):
        one_ids, one_scores = model.recommend(user, SOME[user], N=4)
        assert one_ids.shape == one_scores.shape == (4,)
        np.testing.assert_array_equal(ids[row], one_ids)
        np.testing.assert_allclose(scores[row], one_scores, rtol=1e-6)


ONE = [2, np.int64(2), np.uint8(2), np.array(2)]
MANY = [list, tuple, np.array, lambda ids: range(ids[0], ids[-1] + 1)]


def test_any_kind_of_integers_is_ids(model, family):
    expected, _ = model.recommend(2, SOME[2])
    for one in ONE:
        np.testing.assert_array_equal(model.recommend(one, SOME[2])[0], expected)
    expected, _ = model.recommend([1, 2, 3], SOME[1:4])
    for kind in MANY:
        np.testing.assert_array_equal(model.recommend(kind([1, 2, 3]), SOME[1:4])[0], expected)


def test_the_form_of_rows_does_not_matter(model, family):
    expected, _ = model.recommend(0, SOME[0], recalculate_user=True)
    rows = sp.csr_array(SOME)
    forms = [rows[[0]], SOME[0].astype(np.float64)]
    if hasattr(rows[0], "ndim") and rows[0].ndim == 1:
        forms.append(rows[0])
    for row in forms:
        ids, _ = model.recommend(0, row, recalculate_user=True)
        np.testing.assert_array_equal(ids, expected)
    for row in (SOME[0].tocoo(), SOME[0].tolil(), SOME[0].tocsc()):
        with pytest.warns(ParameterWarning, match="tocsr"):
            ids, _ = model.recommend(0, row, recalculate_user=True)
        np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("options", [{}, {"filter_items": [0, 3]}, {"items": [1, 2, 9]}], ids=str)
@pytest.mark.parametrize("recalculate_user", [False, True])
def test_everybody_at_once(model, family, options, recalculate_user):
    options = {**options, "recalculate_user": recalculate_user}
    whole = model.recommend_all(SOME, N=4, **options)
    expected, _ = model.recommend(np.arange(24), SOME, N=4, **options)
    np.testing.assert_array_equal(whole, expected)
    some = model.recommend_all(SOME[20:], N=4, users_items_offset=20, **options)
    np.testing.assert_array_equal(some, expected[20:])
    assert model.recommend_all(SOME[:0], N=3).shape == (0, 3)


def test_many_users_are_answered_in_parts(model, family):
    """More than are answered at a time: each like the one with the same history."""
    many = np.arange(2**14 + 30) % 24
    found = model.recommend_all(SOME[many], N=4, recalculate_user=True)
    expected = model.recommend_all(SOME, N=4, recalculate_user=True)
    np.testing.assert_array_equal(found, expected[many])


@only(FACTORS)
def test_fold_in_does_not_depend_on_the_batch(model, name):
    whole = model.fold_in(SOME)
    np.testing.assert_array_equal(whole, model.user_factors)
    assert (whole.shape, whole.dtype) == ((24, 4), np.float32)
    for users in ([5], [7, 3, 3], np.arange(10, 24)):
        np.testing.assert_array_equal(model.fold_in(SOME[users]), whole[users])
        np.testing.assert_array_equal(model.recalculate_user(users, SOME[users]), whole[users])
    assert model.fold_in(SOME[:0]).shape == (0, 4)
    assert not model.fold_in(sp.csr_matrix((2, 15))).any()
    np.testing.assert_array_equal(model.recalculate_user(999, SOME[3]), whole[3])
    ids, _ = model.recommend(999, SOME[3], recalculate_user=True)
    np.testing.assert_array_equal(ids, model.recommend(3, SOME[3])[0])
