"""Results as JSON: what is read back is whole, and what is damaged is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf import Comparison, Evaluation, FileFormatError, compare
from safecf.evaluation import over_splits, tail_profile
from tests.helpers import refused
from tests.strategies import damaged

METRIC = "recall@20"
REMEDY = "write it again, by to_dict() or --out"


def through_json(found, **options):
    return json.loads(json.dumps(found.to_dict(**options), allow_nan=False))


NOT_READ = {"checksum", "aggregates", "differences", "verdicts", "floors"}


def earlier(record):
    """What is read of a record of version 0.1, which has no checksum: every part is checked."""
    record = {key: each for key, each in record.items() if key not in NOT_READ}
    record["format"] = record["format"].replace("2", "1")
    if "evaluations" in record:
        record["evaluations"] = [earlier(each) for each in record["evaluations"]]
    return record


def same(first, second):
    """Whether two results hold the same."""
    options = {"metrics": []} if isinstance(first, Comparison) else {"resamples": 2}
    one, other = (each.to_dict(**options) for each in (first, second))
    return one == other


@pytest.fixture(scope="module")
def results(made_up):
    """An evaluation with all there can be, one over two splits, and a comparison of two models."""
    training = {"class": "SAFER2", "params": {"tail": 0.3}, "history": [{"epoch": 1}]}
    training |= {"losses": np.arange(3.0), "weights": np.ones(3), "var": 1.0, "cvar": 2.0}
    parts = [
        made_up(
            "m",
            [0.0, 0.5, 0.2 if split else np.nan, 1.0],
            group=np.array(["x", "y", "x", "x"]),
            ids=np.arange(4) + split,
            data=str(split),
            catalogue={"gini@20": 0.5},
            training=training,
            losses=np.arange(4.0),
            weights=np.ones(4),
            versions={"safecf": "0.0.0"},
            settings={"seed": 1},
        )
        for split in range(2)
    ]
    pair = [made_up(name, [0.1, 0.2, 0.4]) for name in "ab"]
    return {
        "one": parts[0],
        "several": over_splits([parts[1], replace(parts[1], data="2")]),
        "two": compare(pair, resamples=2),
    }


KINDS = {"one": Evaluation, "several": Evaluation, "two": Comparison}


@pytest.mark.parametrize("name", KINDS)
def test_results_come_back(results, name):
    record = through_json(results[name])
    for each in (record, earlier(record)):
        assert same(KINDS[name].from_dict(each), results[name])


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=20)
@given(drawn=st.data())
def test_any_damaged_part_shows_in_the_checksum(results, name, drawn):
    record = through_json(results[name])
    changed = drawn.draw(damaged(record))
    if json.dumps(changed, sort_keys=True) == json.dumps(record, sort_keys=True):
        assert same(KINDS[name].from_dict(changed), results[name])
    else:
        with refused(FileFormatError, REMEDY):
            KINDS[name].from_dict(changed)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=80)
@given(drawn=st.data())
def test_without_a_checksum_any_part_is_whole_or_refused(results, name, drawn):
    changed = drawn.draw(damaged(earlier(through_json(results[name]))))
    try:
        found = KINDS[name].from_dict(changed)
    except FileFormatError as problem:
        with refused(FileFormatError):
            raise problem
    else:
        assert same(KINDS[name].from_dict(earlier(through_json(found))), found)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["format"], "safecf comparison 1", "its format is 'safecf comparison 1'"),
        (["scores", METRIC], [0.1], "'recall@20' has 1 entries for 4 users"),
        (["scores", METRIC, 1], True, "entry 1 of 'recall@20' is a bool"),
        (["scores", METRIC, 1], 10**400, "'recall@20' holds a number that is not finite"),
        (["tails"], [0.3, 30], "'tails' holds 30.0, which is no share of users"),
        (["k"], [0], "'k' holds 0, which is no cutoff"),
        (["users", "target_count", 0], -1, "'target_count' holds a value that is no count"),
        (["users", "group", 1], 3, "entry 1 of 'group' is a int"),
        (["users", "group"], ["x"], "'group' has 1 entries for 4 users"),
        (["weights"], [1.0], "'weights' has 1 entries for 4 users"),
        (["users", "group"], [1, 2, 3, 2**64], "'group' holds integers beyond 64 bits"),
        (["users", "ids"], None, "no 'ids' of the users"),
        (["splits"], [1] * 8, "number the splits"),
    ],
)
def test_errors_say_where_and_what(results, place, value, message):
    record = part = earlier(
        through_json(results["several" if place[-1] in ("ids", "splits") else "one"])
    )
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with refused(FileFormatError, message, REMEDY):
        Evaluation.from_dict(record)


@pytest.mark.parametrize("record", [None, [], 3, "x"])
@pytest.mark.parametrize("kind", [Evaluation, Comparison])
def test_what_is_no_object_is_refused(kind, record):
    with refused(FileFormatError, "not an object"):
        kind.from_dict(record)


@pytest.mark.parametrize("place", ["format", "model", "scores"])
def test_long_names_are_shortened_in_errors(results, place):
    record = through_json(results["one"]) | {"tails": [2]}
    record[place] = {"x" * 5000: [True]} if place == "scores" else "x" * 5000
    with refused(FileFormatError, "x … "):
        Evaluation.from_dict(record)


def test_a_checksum_taken_from_an_inner_evaluation_is_missed(results):
    record = through_json(results["two"])
    del record["evaluations"][0]["checksum"]
    with refused(FileFormatError, "its checksum does not fit, or"):
        Comparison.from_dict(record)


def test_labels_and_ids_are_read_exactly(made_up):
    """As numpy's strings, the longest label would be stored 80 times, and lose its NUL."""
    labels = ["a", "a\0", "x" * 10**6] + ["b"] * 77
    ids = [2**63 + each for each in range(80)]
    scores = np.linspace(0, 1, 80)
    record = through_json(made_up("m", scores, group=np.array(labels, object), ids=np.array(ids)))
    found = Evaluation.from_dict(record)
    assert found.users.group.tolist() == labels
    assert found.users.group.nbytes < 10**6
    assert [each.users for each in found.groups(METRIC).scores if each.label == "a"] == [1]
    assert found.users.ids.tolist() == ids
    for kind in (np.arange(80) % 2 == 0, np.arange(80) % 3):
        again = Evaluation.from_dict(through_json(made_up("m", scores, group=kind)))
        assert again.users.group.dtype == kind.dtype
        assert again.users.group.tolist() == kind.tolist()


def test_null_in_the_catalogue_is_no_number(made_up):
    record = through_json(made_up("m", [np.nan, np.nan]))
    assert record["aggregates"] == {}
    record = earlier(record)
    record["catalogue"] = {"gini@20": None, "coverage@20": 1}
    found = Evaluation.from_dict(record)
    assert found.metrics == (METRIC,)
    assert np.isnan(found.catalogue["gini@20"])
    assert found.catalogue["coverage@20"] == 1.0


def test_a_record_holds_what_a_report_shows(made_up):
    evaluation = made_up("m", np.random.default_rng(4).random(80), group=np.arange(80) % 2)
    record = through_json(evaluation, level=0.25)
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
