"""The metrics against those of scikit-learn, on random scores without ties."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sklearn_metrics

from safecf.measures.metrics import METRICS

USERS, ITEMS = 40, 30
CUTOFFS = (1, 2, 5, 10, 30)


def problem(*, single=False):
    """Return scores, the rankings by them, and the held-out items, one per user or several."""
    rng = np.random.default_rng(5)
    scores = rng.random((USERS, ITEMS))
    target = rng.random((USERS, ITEMS)) < 0.2
    target[:, 0] |= ~target.any(axis=1)
    if single:
        target = np.eye(ITEMS, dtype=bool)[rng.integers(ITEMS, size=USERS)]
    return scores, np.argsort(-scores, axis=1), target


def first(ranked, k):
    """Mark the first k items of each ranking."""
    chosen = np.zeros(ranked.shape, dtype=bool)
    np.put_along_axis(chosen, ranked[:, :k], values=True, axis=1)
    return chosen


def mean(name, ranked, target, k):
    return METRICS[name](ranked, sp.csr_matrix(target), k).mean()


@pytest.mark.parametrize("k", CUTOFFS)
def test_ndcg(k):
    scores, ranked, target = problem()
    expected = sklearn_metrics.ndcg_score(target, scores, k=k)
    assert mean("ndcg", ranked, target, k) == pytest.approx(expected)


@pytest.mark.parametrize("k", CUTOFFS)
def test_precision(k):
    _, ranked, target = problem()
    expected = sklearn_metrics.precision_score(target, first(ranked, k), average="samples")
    assert mean("precision", ranked, target, k) == pytest.approx(expected)


@pytest.mark.parametrize("k", CUTOFFS)
def test_recall_with_its_own_denominator(k):
    _, ranked, target = problem()
    held_out = target.sum(axis=1)
    chosen = first(ranked, k)
    shares = [sklearn_metrics.recall_score(t, c) for t, c in zip(target, chosen, strict=True)]
    expected = np.mean(shares * held_out / np.minimum(k, held_out))
    assert mean("recall", ranked, target, k) == pytest.approx(expected)


def test_map_over_the_whole_ranking():
    scores, ranked, target = problem()
    expected = [
        sklearn_metrics.average_precision_score(t, s) for t, s in zip(target, scores, strict=True)
    ]
    np.testing.assert_allclose(METRICS["map"](ranked, sp.csr_matrix(target), ITEMS), expected)


@pytest.mark.parametrize("k", CUTOFFS[:-1])
def test_hit_and_recall_of_a_single_item_are_top_k_accuracy(k):
    scores, ranked, target = problem(single=True)
    expected = sklearn_metrics.top_k_accuracy_score(
        target.argmax(axis=1), scores, k=k, labels=np.arange(ITEMS)
    )
    assert mean("hit", ranked, target, k) == pytest.approx(expected)
    assert mean("recall", ranked, target, k) == pytest.approx(expected)


def test_mrr_of_a_single_item_is_label_ranking_average_precision():
    scores, ranked, target = problem(single=True)
    expected = sklearn_metrics.label_ranking_average_precision_score(target, scores)
    assert mean("mrr", ranked, target, ITEMS) == pytest.approx(expected)
    assert mean("map", ranked, target, ITEMS) == pytest.approx(expected)
