"""EASE: the closed form against independent solutions, its rankings, and what it refuses."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import EASE, ConvergenceWarning, SolveError, free_memory
from safecf.models import ease, inverse, ranking

REGULARIZATION = 2.5
CLASSIC = {"normalisation": 0.0, "dropout": 0.0}
WEIGHTED = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.4), (1.0, 0.3)]  # normalisation, dropout


def classic(regularization=REGULARIZATION):
    return EASE(regularization, **CLASSIC)


@pytest.fixture
def model(data):
    return fit(classic(), data)


@pytest.fixture
def confident(data):
    """Return the data with confidences."""
    values = np.random.default_rng(5).integers(1, 5, data.nnz).astype(np.float32)
    return sp.csr_matrix((values, data.indices, data.indptr), shape=data.shape)


def fit(model, data, **rest):
    return model.fit(data, show_progress=False, **rest)


def precision(data, regularization=REGULARIZATION):
    x = data.toarray().astype(np.float64)
    return np.linalg.inv(x.T @ x + regularization * np.eye(x.shape[1]))


def test_every_column_is_a_ridge_regression_on_the_others(model, data):
    x = data.toarray().astype(np.float64)
    for item in range(x.shape[1]):
        others = np.delete(np.arange(x.shape[1]), item)
        gram = x[:, others].T @ x[:, others] + REGULARIZATION * np.eye(others.size)
        expected = np.linalg.solve(gram, x[:, others].T @ x[:, item])
        np.testing.assert_allclose(model.item_weights[others, item], expected, atol=1e-6)
    assert not model.item_weights.diagonal().any()
    assert model.item_weights.dtype == np.float32


def test_items_of_nobody_change_nothing_for_the_others(data, model):
    wider = sp.hstack([data, sp.csr_matrix((data.shape[0], 2))]).tocsr()
    weights = fit(classic(), wider).item_weights
    assert not weights[-2:].any()
    assert not weights[:, -2:].any()
    np.testing.assert_allclose(weights[:-2, :-2], model.item_weights, atol=1e-7)


def weights_of(x, normalisation):
    """Return w_u = c n_u^-rho, such that interactions weigh 1 on average."""
    lengths = x.sum(axis=1)
    found = np.where(lengths > 0, lengths, 1) ** -normalisation
    return found * lengths.sum() / np.sum(found * lengths)


def objective(x, weights, normalisation, dropout):
    """Return sum_u w_u |x_u - x_u B|^2 + sum_i (lambda + p/(1-p) G_ii) |B_i|^2."""
    w = weights_of(x, normalisation)
    fitted = np.sum(w * np.sum((x - x @ weights) ** 2, axis=1))
    ridge = REGULARIZATION + dropout / (1 - dropout) * (w @ x**2)
    return fitted + np.sum(ridge * np.sum(weights**2, axis=1))


@pytest.mark.parametrize(("normalisation", "dropout"), WEIGHTED)
def test_the_callback_hears_of_one_epoch_and_its_objective(confident, normalisation, dropout):
    calls = []
    model = EASE(REGULARIZATION, normalisation=normalisation, dropout=dropout)
    fit(model, confident, callback=lambda *call: calls.append(call))
    x, weights = confident.toarray().astype(np.float64), model.item_weights.astype(np.float64)
    [(epoch, seconds, found)] = calls
    assert epoch == 0
    assert seconds > 0
    assert found == pytest.approx(objective(x, weights, normalisation, dropout), rel=1e-6)


@pytest.mark.parametrize(("normalisation", "dropout"), WEIGHTED)
def test_the_objective_is_flat_at_the_weights(confident, normalisation, dropout):
    """Its numeric gradient is zero for every B_ij with i != j; diag(B) = 0."""
    x = confident.toarray().astype(np.float64)[:, :6]
    model = EASE(REGULARIZATION, normalisation=normalisation, dropout=dropout)
    weights = fit(model, sp.csr_matrix(x)).item_weights.astype(np.float64)
    assert not weights.diagonal().any()
    step, scale = 1e-3, np.abs(x.T @ x).max()
    for place in itertools.permutations(range(6), 2):
        sides = []
        for sign in (1, -1):
            moved = weights.copy()
            moved[place] += sign * step
            sides.append(objective(x, moved, normalisation, dropout))
        assert abs(sides[0] - sides[1]) / (2 * step) < 1e-5 * scale
        assert min(sides) > objective(x, weights, normalisation, dropout)


def test_dropout_is_the_mean_over_all_dropped_inputs():
    """E |x - d(x) B|^2 over all ways to drop items has the same minimum as the closed form."""
    x, dropout = np.array([[1.0, 1, 0], [1, 1, 1], [0, 2, 1], [1, 0, 0]]), 0.3
    weights = fit(EASE(0.7, normalisation=0, dropout=dropout), sp.csr_matrix(x)).item_weights
    gram, moment = np.zeros((3, 3)), np.zeros((3, 3))  # E d'd and E d'x
    for kept in itertools.product((0, 1), repeat=3):
        chance = np.prod([1 - dropout if each else dropout for each in kept])
        noisy = x * kept / (1 - dropout)
        gram += chance * noisy.T @ noisy
        moment += chance * noisy.T @ x
    for item in range(3):
        others = np.delete(np.arange(3), item)
        left = gram[np.ix_(others, others)] + 0.7 * np.eye(2)
        expected = np.linalg.solve(left, moment[others, item])
        np.testing.assert_allclose(weights[others, item], expected, rtol=1e-5)


def test_interactions_weigh_one_on_average(confident):
    mass = np.append(np.asarray(confident.sum(axis=1)).ravel(), 0)
    for normalisation in (0.0, 0.3, 1.0):
        found = ease.user_weights(mass, normalisation)
        assert found @ mass == pytest.approx(mass.sum())
        np.testing.assert_allclose(found[:-1] / found[-1], mass[:-1] ** -normalisation)
    assert (ease.user_weights(mass, 0) == 1).all()


def test_the_classic_model_has_the_bits_of_its_formula(confident, monkeypatch):
    monkeypatch.setattr(inverse, "BLOCK", 6)
    x = confident.astype(np.float64)
    expected = (x.T @ x).toarray() + REGULARIZATION * np.eye(x.shape[1])
    inverse.invert(expected, 1, lambda done: None)
    expected = (expected / -expected.diagonal()).astype(np.float32)
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(fit(classic(), confident).item_weights, expected)


def test_the_callback_can_use_the_model_and_its_errors_leave_no_trace(data, model):
    before = model.item_weights.copy()

    def callback(*call):
        assert model.recommend(0, data[0, :9], N=2)[0].shape == (2,)
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fit(model, data[:, :9], callback=callback)
    np.testing.assert_array_equal(model.item_weights, before)
    assert model.shape == data.shape


@pytest.mark.parametrize("block", [1, 7, 20, 64])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_any_size_invert(data, monkeypatch, block, threads):
    monkeypatch.setattr(inverse, "BLOCK", block)
    expected = precision(data, 0.01)
    matrix = np.linalg.inv(expected)
    matrix[np.triu_indices(len(matrix), 1)] = 99  # only the lower triangle is looked at
    done = []
    inverse.invert(matrix, threads, done.append)
    np.testing.assert_allclose(matrix, expected, rtol=1e-9, atol=1e-9)
    assert done == list(range(1, -(-data.shape[1] // block) + 1))


def test_several_blocks_have_the_same_bits_on_any_number_of_threads(data, monkeypatch):
    monkeypatch.setattr(inverse, "BLOCK", 6)
    one, *others = (fit(EASE(num_threads=n), data).item_weights for n in (1, 2, 5, 0))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_what_cannot_be_inverted_is_refused(data, model):
    before = model.item_weights
    twins = sp.hstack([data, data]).tocsr()
    model.regularization = 0  # as well as no dropout
    with pytest.raises(SolveError, match="regularization=0; raise regularization"):
        fit(model, twins)
    assert model.item_weights is before
    wild = sp.csr_matrix([[1e-37, 1e12], [0, 1]])
    with pytest.raises(SolveError, match="scale the weights"):
        fit(classic(1e-80), wild)


def test_too_many_items_are_refused_before_any_work(data, monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(ease, "solve", None)
    many = sp.csr_matrix(([1.0], ([0], [29_999])), shape=(1, 30_000))
    with pytest.raises(MemoryError, match=r"EASE of 30,000 items needs 10\.8 GB .* 1\.0 GB"):
        fit(EASE(), many)


@pytest.mark.parametrize("free", [None, 12 * 20 * 20])
def test_what_fits_is_done(data, monkeypatch, free):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: free)
    assert fit(EASE(), data).is_fitted


def expected_ranking(data, user, model, left_out):
    scores = data[user].toarray()[0] @ model.item_weights
    order = np.argsort(-scores, kind="stable")
    chosen = [item for item in order if item not in left_out]
    return chosen, scores[chosen]


@pytest.mark.parametrize("together", [1, 50, 2**22])
def test_ranks_by_the_row_times_the_weights(data, model, monkeypatch, together):
    monkeypatch.setattr(ranking, "SCORES", together)
    everybody = np.arange(data.shape[0])
    ids, scores = model.recommend(everybody, data, N=20, filter_items=[3, 4])
    for user in everybody:
        left_out = {3, 4, *data[user].indices}
        expected, values = expected_ranking(data, user, model, left_out)
        assert ids[user, : len(expected)].tolist() == expected
        assert (ids[user, len(expected) :] == -1).all()
        np.testing.assert_allclose(scores[user, : len(expected)], values, rtol=1e-5, atol=1e-6)
    chosen = [2, 3, 11]
    ids, _ = model.recommend(everybody, data, items=chosen, filter_already_liked_items=False)
    for user in everybody:
        rest = set(range(20)) - set(chosen)
        assert ids[user].tolist() == expected_ranking(data, user, model, rest)[0]


def test_similarities_are_partial_correlations(data, model):
    inverted = precision(data)
    lengths = np.sqrt(inverted.diagonal())
    expected = -inverted / np.outer(lengths, lengths)
    np.fill_diagonal(expected, 1)
    ids, scores = model.similar_items(np.arange(20), N=20)
    for item in range(20):
        np.testing.assert_allclose(scores[item], expected[item, ids[item]], atol=1e-6)
        assert sorted(ids[item]) == list(range(20))


def test_items_that_are_never_together_are_like_nobody():
    pairs = sp.csr_matrix([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
    model = fit(EASE(), pairs)
    assert model.similar_items([0, 2, 3], N=3)[0].tolist() == [[0, 1, -1], [-1] * 3, [-1] * 3]


def test_what_overflows_in_the_inverse_is_refused(recwarn):
    lonely = sp.csr_matrix([[0.0, 0, 0], [0, 0, 1]])
    with pytest.raises(SolveError, match=r"at regularization=4.94.*e-324; raise regularization"):
        fit(EASE(5e-324), lonely)
    assert not [str(each.message) for each in recwarn]


def test_items_that_others_determine_are_told(recwarn):
    rng = np.random.default_rng(0)
    some = (rng.random((30, 4)) < 0.5).astype(float)
    twins = sp.csr_matrix(np.hstack([some, some[:, :1]]))
    with pytest.warns(ConvergenceWarning, match=r"weights are rounding: regularization=1e-12 is"):
        fit(classic(1e-12), twins)
    recwarn.clear()
    fit(classic(1e-6), twins)
    fit(classic(1e-12), sp.csr_matrix(some))
    assert not [str(each.message) for each in recwarn]
