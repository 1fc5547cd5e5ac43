"""`evaluate` on trained models and on faulty ones, and the methods of `Evaluation`."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from safecf import EASE, ERMMF, IALS, SAFER2
from safecf.evaluation import METRICS, RANK_METRICS, Evaluation, compare, evaluate
from safecf.split import HeldOut

NAMES = tuple(METRICS)


@pytest.fixture(scope="module")
def model(split):
    return SAFER2(4, iterations=5, random_state=0).fit(split.train, show_progress=False)


@pytest.fixture(scope="module")
def evaluation(model, split):
    return evaluate(model, split, k=(5, 10))


class Fixed:
    """A model with fixed recommendations."""

    def __init__(self, ids, scores=None):
        self.ids = np.asarray(ids)
        self.scores = np.zeros(self.ids.shape) if scores is None else np.asarray(scores)

    def recommend(self, userid, user_items, N=10, recalculate_user=False):
        return self.ids[userid], self.scores[userid]


def test_the_scores_are_the_metrics_of_the_recommendations(model, split, evaluation):
    history, target = split.test.history, split.test.target
    users = np.arange(history.shape[0])
    ranked, _ = model.recommend(users, history, N=10, recalculate_user=True)
    at_cutoffs = tuple(f"{name}@{k}" for name in NAMES for k in (5, 10))
    assert evaluation.metrics == (*at_cutoffs, *RANK_METRICS)
    for name in NAMES:
        for k in (5, 10):
            expected = METRICS[name](ranked, target, k)
            np.testing.assert_array_equal(evaluation.scores[f"{name}@{k}"], expected)
    for k in (5, 10):
        shown = np.unique(ranked[:, :k])
        assert evaluation.catalogue[f"coverage@{k}"] == np.count_nonzero(shown >= 0) / 40
    assert evaluation.k == (5, 10)
    assert evaluation.model == "SAFER2"
    assert evaluate(model, split, name="mine").model == "mine"


class Stranger:
    """A model that can only recommend."""

    def __init__(self, model):
        self.model = model

    def recommend(self, *args, **options):
        return self.model.recommend(*args, **options)


@pytest.mark.parametrize("kind", [IALS, EASE])
def test_the_whole_ranking_is_scored_too(kind, split):
    model = kind(4).fit(split.train, show_progress=False)
    history, target = split.test.history, split.test.target
    users, num_items = np.arange(history.shape[0]), history.shape[1]
    ranked, _ = model.recommend(users, history, N=num_items, recalculate_user=True)
    found = evaluate(model, split)
    stranger = evaluate(Stranger(model), split, batch=7)
    for user, score in enumerate(found.scores["auc"][:-1]):
        row, wanted = ranked[user], target[user].indices
        hits = np.isin(row[row >= 0], wanted)
        above = np.flatnonzero(hits) - np.arange(wanted.size)  # others that rank higher
        assert score == pytest.approx(1 - above.mean() / np.count_nonzero(~hits))
    for name in RANK_METRICS:
        np.testing.assert_array_equal(stranger.scores[name], found.scores[name])
    np.testing.assert_array_equal(stranger.scores["recall@20"], found.scores["recall@20"])
    assert evaluate(model, split, k=10, metrics=("auc", "recall")).metrics == ("recall@10", "auc")


def test_a_short_ranking_leaves_the_others_to_the_end(split):
    """User 18 has no history and the held-out items 3 and 5."""
    found = evaluate(Fixed(np.tile([8, 3], (20, 1))), split, k=2)
    assert split.test.target[18].indices.tolist() == [3, 5]
    best, ranks, last = np.array([1, 2]), np.array([2, 40]), np.array([39, 40])
    wrong = np.sum(ranks - best) / np.sum(last - best)
    assert found.scores["auc"][18] == pytest.approx(1 - wrong)
    wrong = np.sum(np.log(ranks / best)) / np.sum(np.log(last / best))
    assert found.scores["log_rank"][18] == pytest.approx(1 - wrong)
    worst = evaluate(Fixed(np.tile([8, 4], (20, 1))), split, k=2)
    assert worst.scores["auc"][18] == worst.scores["log_rank"][18] == 0
    assert worst.scores["ndcg"][18] > 0


def test_ranks_that_do_not_fit_are_refused(split):
    class Wrong(Fixed):
        def ranks(self, user_items, target):
            return np.zeros(3)

    with pytest.raises(ValueError, match=r"ranks returned an array of shape \(3,\)"):
        evaluate(Wrong(np.tile([5, 3], (20, 1))), split, k=2)


def test_evaluations_of_before_are_read_and_compared(evaluation):
    record = evaluation.to_dict()
    del record["checksum"]
    record["format"] = "safecf evaluation 1"
    record["scores"] = {name: s for name, s in record["scores"].items() if "@" in name}
    old = Evaluation.from_dict(json.loads(json.dumps({**record, "model": "old"})))
    assert "auc" not in old.metrics
    assert compare([old, evaluation], resamples=20).metrics == old.metrics


def test_batches_change_nothing(model, split, evaluation):
    for batch in (1, 7, 1000):
        other = evaluate(model, split, k=(10, 5, 5), batch=batch)
        assert other.to_dict() == evaluation.to_dict()


def test_validation_users_are_other_users(model, split, evaluation):
    other = evaluate(model, split, k=(5, 10), on="validation")
    assert len(other.users.target_count) == 10
    assert other.data != evaluation.data


def test_a_user_without_held_out_items_has_no_score_and_counts_nowhere(split, evaluation):
    scores = evaluation.scores["recall@5"]
    assert np.flatnonzero(np.isnan(scores)).tolist() == [19]
    assert evaluation.unscored == 1
    assert evaluation.mean("recall@5") == pytest.approx(np.nanmean(scores))
    assert evaluation.tail("recall@5", 1.0) == evaluation.mean("recall@5")


def test_tails_rise_with_their_level(evaluation):
    for metric in evaluation.metrics:
        levels, values = evaluation.tail_curve(metric)
        assert levels.tolist() == list(evaluation.tails)
        assert (np.diff(values) >= -1e-12).all()
        shares, quantiles = evaluation.quantile_curve(metric)
        assert len(shares) == 100
        assert (np.diff(quantiles) >= 0).all()
        assert quantiles[-1] == np.nanmax(evaluation.scores[metric])
        assert quantiles[9] == evaluation.value_at_risk(metric, 0.1)
        low, high = evaluation.interval(metric, 0.3, resamples=200)
        assert low <= evaluation.tail(metric, 0.3) <= high


def test_the_profile_says_who_the_users_are(split, evaluation):
    history, users = split.test.history, evaluation.users
    counts = np.asarray(split.train.sum(axis=0)).ravel()
    percentile = [(counts < c).mean() + (counts == c).mean() / 2 for c in counts]
    expected = [np.mean(np.array(percentile)[row.indices]) for row in history[:18]]
    np.testing.assert_allclose(users.popularity[:18], expected)
    np.testing.assert_array_equal(users.history_length, history.getnnz(axis=1))
    np.testing.assert_array_equal(users.target_count, split.test.target.getnnz(axis=1))
    assert users.history_length[18] == 0
    assert math.isnan(users.popularity[18])
    assert users.group is None


def test_groups_come_from_the_split(model, split):
    @dataclasses.dataclass(frozen=True)
    class Grouped(HeldOut):
        groups: object = None

    labels = np.array(["many"] * 15 + ["few"] * 4 + ["unscored"])
    test = Grouped(split.test.history, split.test.target, labels)
    grouped = evaluate(model, dataclasses.replace(split, test=test), k=10)
    scores = grouped.scores["recall@10"]
    found = {each.label: each for each in grouped.groups("recall@10").scores}
    assert set(found) == {"many", "few"}  # the third has no score
    assert found["many"].mean == pytest.approx(scores[:15].mean())
    assert found["few"].mean == pytest.approx(scores[15:19].mean())
    assert (found["many"].users, found["few"].users) == (15, 4)
    again = Evaluation.from_dict(json.loads(json.dumps(grouped.to_dict())))
    assert again.groups("recall@10") == grouped.groups("recall@10")
    wrong = dataclasses.replace(split, test=dataclasses.replace(test, groups=labels[:3]))
    with pytest.raises(ValueError, match=r"groups have shape \(3,\), while there are 20 users"):
        evaluate(model, wrong)


@pytest.mark.parametrize("kind", [IALS, ERMMF, SAFER2])
def test_losses_and_weights_are_those_of_the_models_own_objective(kind, split):
    model = kind(4, iterations=5, random_state=0).fit(split.train, show_progress=False)
    found = evaluate(model, split, batch=6)
    loss, ridge, risk, _ = model.compose()
    items = model.item_factors.astype(np.float64)
    folded = model.fold_in(split.test.history)

    def measured(users, factors):
        """What the risk measures: the loss, with the ridge where it belongs to the risk."""
        confidence, factors = users.toarray().astype(float), factors.astype(float)
        scores, mass = factors @ items.T, confidence.sum(axis=1)
        weight = loss.pair_weight(mass)
        losses = weight / 2 * (confidence * (1 - scores) ** 2).sum(axis=1)
        losses += loss.unobserved_weight / 2 * (scores**2).sum(axis=1)
        scale = weight * mass + loss.unobserved_weight * model.num_items
        ridges = model.resolved["regularization"] * scale / 2 * (factors**2).sum(axis=1)
        return losses + (ridges if ridge.in_risk else 0)

    np.testing.assert_allclose(found.losses, measured(split.test.history, folded), rtol=1e-4)
    expected = measured(split.train, model.user_factors)
    np.testing.assert_allclose(found.training["losses"], expected, rtol=1e-4)
    np.testing.assert_array_equal(found.training["weights"], model.user_weights)
    np.testing.assert_array_equal(found.weights, model.training_weights(found.losses))
    tail = found.training["tail"]
    assert tail == risk.tail
    worst = np.sort(found.training["losses"])[::-1][: int(tail * 30)]
    assert found.training["cvar"] == pytest.approx(worst.mean())
    assert found.training["var"] == worst[-1]
    assert [epoch["epoch"] for epoch in found.training["history"]] == [1, 2, 3, 4, 5]
    assert found.training["class"] == kind.__name__
    assert found.training["params"]["factors"] == 4
    assert found.training["resolved"] == model.resolved


def test_the_table_reads_well(made_up):
    evaluation = made_up("iALS", [0.0, 0.5, 0.5, 1.0])
    assert evaluation.table(levels=(0.5, 1.0)) == (
        "| iALS | worst-off 50 % | all users |\n"
        "| --- | --- | --- |\n"
        "| recall@20 | 0.2500 | 0.5000 |"
    )
    assert str(evaluation) == evaluation.table()
    (row,) = evaluation.rows(levels=[1.0], confidence=0.9)
    assert row["low"] <= row["value"] <= row["high"]
    assert "0.5000 [0." in evaluation.table(levels=[1.0], confidence=0.9)
    assert repr(evaluation) == "Evaluation('iALS', 4 users)"


def test_models_of_other_libraries_need_no_more_than_recommend(split):
    ranked = np.tile(np.arange(10), (20, 1))
    found = evaluate(Fixed(ranked), split, k=10)
    np.testing.assert_array_equal(
        found.scores["recall@10"], METRICS["recall"](ranked, split.test.target, 10)
    )
    assert found.training == {}
    assert found.losses is None
    assert found.weights is None


def test_a_model_is_asked_by_what_it_can_do_not_by_its_class(model, split, evaluation):
    class Wrapped:
        def __getattr__(self, name):
            return getattr(model, name)

    found = evaluate(Wrapped(), split, k=(5, 10), name="SAFER2").to_dict()
    assert found["training"].pop("class") == "Wrapped"
    expected = evaluation.to_dict()
    assert expected["training"].pop("class") == "SAFER2"
    assert found.pop("checksum") != expected.pop("checksum")
    assert found == expected


def test_a_cutoff_far_beyond_the_catalogue_takes_no_memory(model, split):
    """A ranking of so many columns would take 80 GB."""
    found = evaluate(model, split, k=(40, 10**9 - 1))
    for name in ("recall", "ndcg", "map", "mrr", "hit"):
        at_all = found.scores[f"{name}@40"]
        np.testing.assert_array_equal(found.scores[f"{name}@999999999"], at_all)
    hits = 40 * found.scores["precision@40"]
    np.testing.assert_allclose(found.scores["precision@999999999"], hits / (10**9 - 1))


def test_ranks_beyond_the_catalogue_are_misses(model, split):
    found = evaluate(model, split, k=(40, 1000))
    recall = found.scores["recall@1000"]
    assert (recall[~np.isnan(recall)] == 1).all()
    np.testing.assert_allclose(
        found.scores["precision@1000"] * 1000, found.scores["precision@40"] * 40
    )
    narrow = Fixed(np.tile(np.arange(10), (20, 1)))
    np.testing.assert_array_equal(
        evaluate(narrow, split, k=50).scores["recall@50"] > 0,
        evaluate(narrow, split, k=10).scores["recall@10"] > 0,
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Fixed(np.zeros((20, 3), int), np.full((20, 3), np.nan)), "the score nan for user 0, item"),
        (Fixed(np.zeros((20, 3), int)), "item 0 more than once in row 0"),
        (Fixed(np.full((20, 3), 40)), "item 40 in row 0, outside of 0 to 39"),
        (Fixed(np.full((20, 3), -1)), "no item for any of the users 0 to 19"),
        (Fixed(np.zeros((20, 50), int)), r"ids of shape \(20, 50\) and scores"),
        (Fixed(np.zeros((20, 3), int), np.zeros((20, 2))), r"scores of shape \(20, 2\)"),
        (Fixed(np.zeros(20, int)), r"ids of shape \(20,\)"),
    ],
)
def test_bad_recommendations_are_refused(split, answer, message):
    with pytest.raises(ValueError, match=message):
        evaluate(answer, split, k=20)


def test_factors_that_are_not_finite_are_refused(split):
    model = IALS(4, iterations=1, random_state=0).fit(split.train, show_progress=False)
    model.item_factors[7] = np.nan
    with pytest.raises(ValueError, match=r"item_factors of the model hold NaN .* row 7"):
        evaluate(model, split)


def test_bad_splits_are_refused(model, split):
    history, target = split.test.history, split.test.target
    for test, message in (
        (None, "the split has no test users"),
        (HeldOut(history, csr_matrix((20, 40))), "none of the 20 test users has held-out"),
        (HeldOut(history[:5], target), "test.history has 5 rows and test.target 20"),
        (HeldOut(history, target[:, :39]), "test.target has 39 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate(model, dataclasses.replace(split, test=test))
