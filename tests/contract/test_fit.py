"""fit: determinism, refitting, what it accepts, and that it refuses the rest without a trace."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import EASE, Interactions, ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import LEARNED, arrays_of, assert_same, fitted, only


def test_fit_returns_the_model(make, data):
    model = make()
    assert model.shape == (0, 0)
    assert not model.is_fitted
    assert model.fit(data, show_progress=False) is model
    assert model.shape == (24, 15)
    assert model.is_fitted
    for array in arrays_of(model).values():
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert np.isfinite(array).all()


@only(MatrixFactorization)
def test_factors(make, data):
    model = fitted(make(), data)
    for factors, size in ((model.user_factors, 24), (model.item_factors, 15)):
        assert factors.shape == (size, 4)
        assert factors.dtype == np.float32
    assert [record.epoch for record in model.history] == [1, 2, 3]


@only(MatrixFactorization)
def test_training_lowers_the_objective(model):
    objective = [record.objective for record in model.history]
    assert objective[-1] < objective[0]


@only(MatrixFactorization)
def test_users_without_interactions_get_zero(model):
    assert np.flatnonzero(~model.user_factors.any(axis=1)).tolist() == [4]


@only(ALSModel)
def test_items_without_interactions_get_zero(model):
    assert np.flatnonzero(~model.item_factors.any(axis=1)).tolist() == [6]
    assert (model.num_users, model.num_items) == (23, 14)


@only(ALSModel)
def test_empty_rows_change_nothing_for_the_others(make, data, name):
    keep_users, keep_items = np.delete(np.arange(24), 4), np.delete(np.arange(15), 6)
    options = LEARNED.get(name, {"iterations": 30})
    model, smaller = make(**options), make(**options)
    fitted(model, data)
    fitted(smaller, data[keep_users][:, keep_items])
    assert model.history[-1].objective == pytest.approx(smaller.history[-1].objective, rel=0.05)


@only(MatrixFactorization)
def test_the_seed_decides(make, data):
    assert_same(fitted(make(), data), fitted(make(), data))
    other = fitted(make(random_state=4), data)
    assert not np.array_equal(other.item_factors, fitted(make(), data).item_factors)


@only(MatrixFactorization)
@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds(make, data, kind):
    one, same = (fitted(make(random_state=kind(5)), data) for _ in range(2))
    assert_same(one, same)
    generator = kind(5)
    first = fitted(make(random_state=generator), data)
    second = fitted(make(random_state=generator), data)
    assert_same(first, one)
    assert first.seed != second.seed


@only(MatrixFactorization)
def test_without_a_seed_runs_differ_but_can_be_repeated(make, data):
    one, other = (fitted(make(random_state=None), data) for _ in range(2))
    assert one.seed != other.seed
    assert_same(fitted(make(random_state=one.seed), data), one)
    assert one.random_state is None


@only(ALSModel, EASE)  # torch promises nothing for another number of threads
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_threads_change_no_bit(make, data, num_threads):
    one, many = make(num_threads=0), make(num_threads=num_threads)
    assert_same(fitted(one, data), fitted(many, data))
    users = np.arange(24)
    for mine, theirs in zip(one.recommend(users, data), many.recommend(users, data), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_refitting_starts_afresh(make, data):
    model = fitted(make(), data)
    model.similar_items(0)
    model.recommend(0, data[0], recalculate_user=True)
    smaller = data[:12, :9]
    assert_same(fitted(model, smaller), fitted(make(), smaller))
    assert model.shape == (12, 9)
    ids, _ = model.similar_items(0, N=20)
    assert ids.max() < 9


@only(MatrixFactorization)
def test_refitting_makes_other_factors(make, data):
    model = fitted(make(), data)
    model.fold_in(data)
    smaller = data[:12, :9]
    fitted(model, smaller)
    assert len(model.history) == 3
    assert model.user_factors.shape == (12, 4)
    np.testing.assert_array_equal(model.fold_in(smaller), model.user_factors)
    model.factors = 2
    assert fitted(model, data).item_factors.shape == (15, 2)


def with_wide_indices(data):
    wide = data.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide


def unsorted(data):
    shuffled = data.copy()
    for row in range(data.shape[0]):
        part = slice(*data.indptr[row : row + 2])
        shuffled.indices[part] = data.indices[part][::-1]
        shuffled.data[part] = data.data[part][::-1]
    shuffled.has_sorted_indices = False
    return shuffled


def with_explicit_zeros(data):
    filled = data.tolil()
    filled[4, 6] = 99
    filled = filled.tocsr()
    filled.data[filled.data == 99] = 0
    return filled


VARIANTS = {
    "csr_array": sp.csr_array,
    "float64": lambda data: data.astype(np.float64),
    "int64 indices": with_wide_indices,
    "unsorted": unsorted,
    "explicit zeros": with_explicit_zeros,
    "Interactions": Interactions.from_csr,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_form_of_the_data_does_not_matter(make, data, variant):
    assert_same(fitted(make(), VARIANTS[variant](data)), fitted(make(), data))


@pytest.mark.parametrize("convert", ["tocoo", "tolil", "tocsc", "todok"])
def test_other_formats_are_converted_with_a_warning(make, data, convert):
    model = make()
    with pytest.warns(ParameterWarning, match="tocsr"):
        fitted(model, getattr(data, convert)())
    assert_same(model, fitted(make(), data))


def test_duplicates_are_added_up_with_a_warning(make, data):
    doubled = sp.csr_matrix(
        (np.repeat(data.data / 2, 2), np.repeat(data.indices, 2), data.indptr * 2), data.shape
    )
    model = make()
    with pytest.warns(ParameterWarning, match="duplicate"):
        fitted(model, doubled)
    assert_same(model, fitted(make(), data))


def test_any_number_type_holds_weights(make, checkerboard):
    expected = fitted(make(), checkerboard)
    for dtype in (np.int8, np.int64, np.uint16, bool):
        assert_same(fitted(make(), checkerboard.astype(dtype)), expected)


def test_weights_count(make, data):
    weighted, unweighted = fitted(make(), data), fitted(make(), (data > 0).astype(np.float32))
    _, scores = weighted.recommend([0, 1], data[:2], recalculate_user=True)
    _, others = unweighted.recommend([0, 1], data[:2], recalculate_user=True)
    assert not np.allclose(scores, others, atol=1e-3)


def test_the_input_is_never_modified(make, data):
    for matrix in (data, unsorted(data), with_explicit_zeros(data)):
        before = [part.copy() for part in (matrix.indptr, matrix.indices, matrix.data)]
        for part in (matrix.indptr, matrix.indices, matrix.data):
            part.flags.writeable = False
        model = fitted(make(), matrix)
        model.recommend(np.arange(24), matrix, recalculate_user=True, items=[1, 2])
        if isinstance(model, MatrixFactorization):
            model.partial_fit_users(np.arange(24), matrix)
        now = (matrix.indptr, matrix.indices, matrix.data)
        for old, new in zip(before, now, strict=True):
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 3)])
def test_tiny_data(make, shape):
    likes = sp.csr_matrix(np.ones(shape))
    model = fitted(make(), likes)
    ids, _ = model.recommend(0, likes[[0]], N=2, filter_already_liked_items=False)
    assert ids.shape == (min(2, shape[1]),)


@only(ALSModel)
def test_one_interaction(make):
    lonely = sp.csr_matrix(([1.0], ([1], [2])), shape=(3, 4))
    model = fitted(make(), lonely)
    assert np.flatnonzero(model.user_factors.any(axis=1)).tolist() == [1]
    assert np.flatnonzero(model.item_factors.any(axis=1)).tolist() == [2]


def poisoned(data, value):
    bad = data.copy()
    bad.data[3] = value
    return bad


BAD_DATA = {
    "None": (lambda data: None, TypeError, "user_items"),
    "dense": (lambda data: data.toarray(), TypeError, "csr_matrix"),
    "list": (lambda data: [[1, 0]], TypeError, "csr_matrix"),
    "nan": (lambda data: poisoned(data, np.nan), ValueError, "nan"),
    "infinite": (lambda data: poisoned(data, np.inf), ValueError, "inf"),
    "negative": (lambda data: poisoned(data, -1), ValueError, "-1"),
    "complex": (lambda data: data.astype(complex), TypeError, "complex"),
    "no interactions": (lambda data: sp.csr_matrix((3, 4)), ValueError, "no interactions"),
    "no rows": (lambda data: sp.csr_matrix((0, 4)), ValueError, "0 x 4"),
    "no columns": (lambda data: sp.csr_matrix((3, 0)), ValueError, "3 x 0"),
}


@pytest.mark.parametrize("case", BAD_DATA)
@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_bad_data_is_refused(make, model, data, snapshot, case, before):
    spoil, error, message = BAD_DATA[case]
    model = model if before == "fitted" else make()
    held = snapshot(model)
    with pytest.raises(error, match=message):
        fitted(model, spoil(data))
    assert snapshot(model) == held


@pytest.mark.parametrize("show_progress", ["no", 0, None])
def test_progress_is_shown_or_not(make, data, show_progress):
    model = make()
    with pytest.raises(TypeError, match=r"show_progress is .*; give True or False"):
        model.fit(data, show_progress=show_progress)
    assert not model.is_fitted


def test_options_cannot_change_in_a_callback(make, data):
    model = make()
    name, value = next(iter(model.get_params().items()))
    message = rf"the callback has set {name}=999 while .* with {name}={value}; set options before"
    with pytest.raises(RuntimeError, match=message):
        model.fit(data, show_progress=False, callback=lambda *_: setattr(model, name, 999))
    assert getattr(model, name) == value
    assert not model.is_fitted
