"""Results read back from JSON, and the errors for damaged records."""

import json

import numpy as np
import pytest

from safecf.errors import FileFormatError
from safecf.evaluation import Comparison, Evaluation, compare, tail_profile

METRIC = "recall@20"


@pytest.fixture
def evaluation(made_up):
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 9, 80) / 8
    settings = {"split": "strong generalisation", "seed": 98765}
    return made_up("m", scores, group=np.arange(80) % 2, weights=scores + 1, settings=settings)


def test_a_record_holds_what_a_report_shows(evaluation):
    record = json.loads(json.dumps(evaluation.to_dict(level=0.25), allow_nan=False))
    found = record["aggregates"][METRIC]
    assert [each["level"] for each in found["tails"]] == [0.1, 0.25, 0.3, 1.0]
    for each in found["tails"]:
        level = each["level"]
        assert each["value"] == evaluation.tail(METRIC, level)
        assert (each["low"], each["high"]) == evaluation.interval(METRIC, level)
        assert each["value_at_risk"] == evaluation.value_at_risk(METRIC, level)
    shares, scores = evaluation.quantile_curve(METRIC)
    assert found["quantiles"] == {"share": shares.tolist(), "score": scores.tolist()}
    groups = evaluation.groups(METRIC)
    assert [each["low"] for each in found["groups"]["scores"]] == [e.low for e in groups.scores]
    assert found["groups"]["worst"]["label"] == groups.worst.label
    assert found["profile"] == tail_profile(evaluation, METRIC, 0.25).to_dict()
    assert record["intervals"] == {"confidence": 0.95, "resamples": 2000, "seed": 0}
    assert record["settings"] == {"split": "strong generalisation", "seed": 98765}
    assert Evaluation.from_dict(record).settings == evaluation.settings


def test_a_metric_without_scores_has_no_aggregates(made_up):
    record = made_up("m", [np.nan, np.nan]).to_dict()
    assert record["aggregates"] == {}
    assert Evaluation.from_dict(record).metrics == (METRIC,)


def test_null_in_the_catalogue_is_no_number(made_up):
    record = made_up("m", [0.1, 0.2]).to_dict()
    record["catalogue"] = {"gini@20": None, "coverage@20": 1}
    del record["checksum"]
    record["format"] = "safecf evaluation 1"
    found = Evaluation.from_dict(record).catalogue
    assert np.isnan(found["gini@20"])
    assert found["coverage@20"] == 1.0


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["format"], "safecf comparison 1", "its format is 'safecf comparison 1'"),
        (["model"], 3, "'model' is a int, not a str"),
        (["scores", METRIC], [0.1], r"'scores'.*'recall@20' has 1 entries for 80 users"),
        (["scores", METRIC, 7], "0.5", "entry 7 of 'recall@20' is a str"),
        (["scores", METRIC, 7], True, "entry 7 of 'recall@20' is a bool"),
        (["scores", METRIC, 7], float("inf"), "'recall@20' holds a number that is not finite"),
        (["scores", METRIC, 7], 10**400, "'recall@20' holds a number that is not finite"),
        (["scores"], [], "'scores' is a list, not a dict"),
        (["tails"], [0.3, 30], "'tails' holds 30.0, which is no share of users"),
        (["tails"], [10**400], "'tails' holds a number that is not finite"),
        (["tails"], [None], "'tails' holds nan, which is no share of users"),
        (["k"], [20.5], "entry 0 of 'k' is a float"),
        (["k"], [0], "'k' holds 0, which is no cutoff"),
        (["k"], [10**400], "'k' holds a number that is not finite"),
        (["users", "target_count", 0], -1, "'target_count' holds a value that is no count"),
        (["users", "target_count", 0], None, "'target_count' holds a value that is no count"),
        (["users", "group"], [1], "'group' has 1 entries for 80 users"),
        (["users", "group", 1], "x", "entry 1 of 'group' is a str"),
        (["users", "group", 1], 2**64, "'group' holds integers beyond 64 bits"),
        (["weights"], [1.0], "'weights' has 1 entries for 80 users"),
        (["training"], {"history": 1}, "'training': 'history' is a int"),
        (["versions"], {"numpy": 2}, "'numpy' is a int, not a str"),
        (["catalogue"], {"gini@20": "x"}, "'gini@20' is a str"),
        (["catalogue"], {"gini@20": 10**400}, "'gini@20' holds a number that is not finite"),
        (["catalogue"], {"gini@20": float("inf")}, "'gini@20' holds a number that is not finite"),
        (["settings"], None, "'settings' is a NoneType, not a dict"),
    ],
)
def test_a_damaged_evaluation_is_refused(evaluation, place, value, message):
    record = evaluation.to_dict()
    part = record
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(
        FileFormatError, match=rf"{message}.*; write it again, by to_dict\(\) or --out"
    ):
        Evaluation.from_dict(record)


@pytest.mark.parametrize("place", ["format", "model", "scores"])
def test_long_names_are_shortened_in_errors(evaluation, place):
    name = "x" * 5000
    record = evaluation.to_dict() | {"tails": [2]}
    record[place] = {name: [True]} if place == "scores" else name
    with pytest.raises(FileFormatError, match=r"^evaluation.*x … .*; write it again") as caught:
        Evaluation.from_dict(record)
    assert len(str(caught.value)) < 500


def test_labels_are_read_exactly_and_take_their_own_space(evaluation):
    """As numpy's strings, the longest label would be stored 80 times, and lose its NUL."""
    record = evaluation.to_dict()
    labels = ["a", "a\0", "x" * 10**6] + ["b"] * 77
    record["users"]["group"] = labels
    del record["checksum"]
    record["format"] = "safecf evaluation 1"
    found = Evaluation.from_dict(record)
    assert found.users.group.tolist() == labels
    assert found.users.group.nbytes < 10**6
    assert [each.users for each in found.groups(METRIC).scores if each.label == "a"] == [1]


@pytest.mark.parametrize("labels", [np.arange(80) % 2 == 0, np.arange(80) % 3, ["a", "b"] * 40])
def test_groups_come_back_from_json(made_up, labels):
    before = made_up("m", np.linspace(0, 1, 80), group=np.array(labels))
    after = Evaluation.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after.groups(METRIC).scores == before.groups(METRIC).scores
    assert after.users.group.tolist() == before.users.group.tolist()


def test_user_ids_of_64_bits_are_read_exactly(evaluation):
    ids = [2**63 + each for each in range(80)]
    record = evaluation.to_dict()
    record["users"]["ids"] = ids
    del record["checksum"]
    record["format"] = "safecf evaluation 1"
    assert Evaluation.from_dict(record).users.ids.tolist() == ids


@pytest.mark.parametrize("key", ["format", "model", "scores", "users", "data", "losses"])
def test_a_missing_part_is_named(evaluation, key):
    record = evaluation.to_dict()
    del record[key]
    with pytest.raises(FileFormatError, match=f"{key!r} is missing"):
        Evaluation.from_dict(record)


@pytest.mark.parametrize("record", [None, [], 3, "x"])
def test_what_is_no_object_is_refused(record):
    for kind in (Evaluation, Comparison):
        with pytest.raises(FileFormatError, match="not an object"):
            kind.from_dict(record)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "safecf evaluation 1", "its format is 'safecf evaluation 1'"),
        ("evaluations", [], "there are no evaluations"),
        ("evaluations", [1], "entry 0 of 'evaluations' is a int"),
        ("evaluations", [{}], "evaluation: 'format' is missing"),
        ("baseline", "c", "unknown baseline 'c'"),
        ("resamples", 0, "resamples=0 has"),
        ("confidence", 2.0, "confidence=2 has"),
        ("seed", -1, "seed=-1 has"),
        ("seed", "0", "'seed' is a str, not a int"),
    ],
)
def test_a_damaged_comparison_is_refused(made_up, key, value, message):
    pair = [made_up(name, [0.1, 0.2, 0.4]) for name in "ab"]
    record = compare(pair, resamples=20).to_dict()
    record[key] = value
    with pytest.raises(FileFormatError, match=message):
        Comparison.from_dict(record)
