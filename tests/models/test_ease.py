"""EASE: the closed form against independent solutions, its rankings, and what it refuses."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import EASE, ConvergenceWarning, SolveError, free_memory
from safecf.models import ease, inverse, ranking
from tests.helpers import refused
from tests.reference import ranking as slow_ranking

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
def test_the_objective_is_told_and_flat_at_the_weights(confident, normalisation, dropout):
    """Its numeric gradient is zero for every B_ij with i != j; diag(B) = 0."""
    x, calls = confident.toarray().astype(np.float64)[:, :6], []
    model = EASE(REGULARIZATION, normalisation=normalisation, dropout=dropout)
    fit(model, sp.csr_matrix(x), callback=lambda *call: calls.append(call))
    weights = model.item_weights.astype(np.float64)
    [(epoch, seconds, found)] = calls
    assert (epoch, seconds > 0) == (0, True)
    assert found == pytest.approx(objective(x, weights, normalisation, dropout), rel=1e-6)
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
    one, many = (fit(EASE(num_threads=n), data).item_weights for n in (1, threads))
    np.testing.assert_array_equal(many, one)


def test_what_cannot_be_inverted_is_refused(data, model, recwarn):
    before = model.item_weights
    twins = sp.hstack([data, data]).tocsr()
    model.regularization = 0  # as well as no dropout
    with pytest.raises(SolveError, match="regularization=0; raise regularization"):
        fit(model, twins)
    assert model.item_weights is before
    wild = sp.csr_matrix([[1e-37, 1e12], [0, 1]])
    with pytest.raises(SolveError, match="scale the weights"):
        fit(classic(1e-80), wild)
    lonely = sp.csr_matrix([[0.0, 0, 0], [0, 0, 1]])
    with pytest.raises(SolveError, match=r"at regularization=4.94.*e-324; raise regularization"):
        fit(EASE(5e-324), lonely)
    assert not recwarn.list


def test_too_many_items_are_refused_before_any_work(data, monkeypatch):
    for enough in (None, 12 * 20 * 20):
        monkeypatch.setattr(free_memory, "available_bytes", lambda free=enough: free)
        assert fit(EASE(), data).is_fitted
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(ease, "solve", None)
    many = sp.csr_matrix(([1.0], ([0], [29_999])), shape=(1, 30_000))
    with refused(MemoryError, "EASE of 30,000 items needs 10.8 GB ", " 1.0 GB"):
        fit(EASE(), many)


@pytest.mark.parametrize("together", [1, 50, 2**22])
def test_ranks_by_the_row_times_the_weights(data, model, monkeypatch, together):
    monkeypatch.setattr(ranking, "SCORES", together)
    everybody, table = np.arange(data.shape[0]), data @ model.item_weights
    ids, scores = model.recommend(everybody, data, N=20, filter_items=[3, 4])
    chosen, _ = model.recommend(everybody, data, items=[2, 3, 11], filter_already_liked_items=False)
    for user in everybody:
        expected = slow_ranking(table[user], {3, 4, *data[user].indices})
        assert ids[user].tolist() == expected + [-1] * (20 - len(expected))
        found = scores[user, : len(expected)]
        np.testing.assert_allclose(found, table[user, expected], rtol=1e-5, atol=1e-6)
        assert chosen[user].tolist() == slow_ranking(table[user], {*range(20)} - {2, 3, 11})


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
