"""Tails that are zero with every model, and what is said about them."""

import dataclasses

import numpy as np
import pytest

from safecf.evaluation import Floor, compare, find_floor

LOW = np.r_[np.zeros(60), np.full(40, 0.5)]
RANKS = np.linspace(0.05, 0.6, 100)


@pytest.fixture
def pair(made_up):
    """Return two models of whom 60 of 100 users get no hit; the second ranks all higher."""
    return [
        dataclasses.replace(
            made_up(name, recall),
            scores={"recall@20": recall, "ndcg": RANKS + shift},
        )
        for name, recall, shift in (("iALS", LOW, 0), ("SAFER2", LOW * 1.2, 0.05))
    ]


def test_a_tail_of_zeros_is_a_floor(pair):
    assert find_floor(pair, "recall@20", 0.3) == Floor("recall@20", 0.3, "ndcg")
    assert find_floor(pair, "recall@20", 0.6) is not None
    assert find_floor(pair, "recall@20", 0.61) is None
    assert find_floor(pair, "ndcg", 0.3) is None
    better = dataclasses.replace(pair[1], scores={"recall@20": LOW + 0.1, "ndcg": RANKS})
    assert find_floor([pair[0], better], "recall@20", 0.3) is None


def test_a_metric_that_is_zero_as_well_is_not_shown_beside(pair):
    scores = {"recall@20": LOW, "auc": LOW, "log_rank": RANKS}
    without = [dataclasses.replace(each, scores=scores) for each in pair]
    assert find_floor(without, "recall@20", 0.3) == Floor("recall@20", 0.3, "log_rank")


def test_the_summary_says_so_and_compares_the_worst_off_by_another_metric(pair):
    comparison = compare(pair, resamples=50)
    said, verdict = comparison.summary("recall@20", 0.3).split("\n")
    assert said == (
        "recall@20 is 0 for all of the worst-off 30 %, whatever the model; ndcg, over the whole "
        "ranking, is shown beside it"
    )
    assert verdict == comparison.verdict("SAFER2", "recall@20", 0.3)
    assert verdict.startswith("SAFER2 lifts the worst-off 30 % by ")
    assert verdict.endswith(
        "(ndcg) and the average by 20.0 % [20.0, 20.0] (recall@20, compared with iALS)"
    )
    tail = comparison.difference("SAFER2", "ndcg", 0.3).relative
    assert f"{tail[0]:.1f} % [{tail[1]:.1f}, {tail[2]:.1f}]" in verdict
    record = comparison.to_dict(level=0.3)
    assert record["floors"] == {"recall@20": said}
    assert "0 for all" not in comparison.summary("recall@20", 1.0)
    assert "0 for all" not in comparison.summary("ndcg", 0.3)


def test_evaluations_without_ranks_are_told_how_to_get_them(pair):
    old = [dataclasses.replace(each, scores={"recall@20": LOW}) for each in pair]
    assert find_floor(old, "recall@20", 0.3) == Floor("recall@20", 0.3, None)
    said = compare(old, resamples=50).summary("recall@20", 0.3)
    assert said.startswith("recall@20 is 0 for all of the worst-off 30 %, whatever the model; eval")
    assert said.endswith("(recall@20, compared with iALS)")
    assert str(Floor("hit@5", 1.0, None)).startswith("hit@5 is 0 for all users, whatever")
    mixed = compare([pair[0], old[1]], resamples=50)
    assert mixed.metrics == ("recall@20",)
    assert mixed.floor("recall@20", 0.3) == Floor("recall@20", 0.3, None)
