"""Arguments of the wrong type or without a meaning: a clear error from every public function."""

import json
import math

import numpy as np
import pytest

from safecf import IALS, compare, evaluate, report
from safecf.errors import FileFormatError
from safecf.evaluation import (
    Comparison,
    Evaluation,
    evaluator,
    find_floor,
    over_splits,
    parse_metric,
    tail_mean,
    tail_profile,
)

METRIC = "recall@20"


@pytest.fixture(scope="module")
def model(split):
    return IALS(4, iterations=2, random_state=0).fit(split.train, show_progress=False)


@pytest.fixture
def pair(made_up):
    return [made_up(name, np.linspace(0, high, 12)) for name, high in (("a", 0.5), ("b", 0.9))]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"model": None}, TypeError, "model is of type NoneType, which has no recommend; give a"),
        ({"model": IALS}, TypeError, r"model is the class IALS; .* as in IALS\(\).fit\("),
        ({"split": None}, TypeError, "the split is of type NoneType, and has no train and test"),
        ({"k": 5.5}, TypeError, "k=5.5 has to be a whole number; try k=20"),
        ({"k": True}, TypeError, "k=True has to be a whole number; try k=20"),
        ({"k": "20"}, TypeError, "k='20' has to be a whole number; try k=20"),
        ({"k": [10, 5.5]}, TypeError, "k=5.5 has to be a whole number"),
        ({"k": np.array([True])}, TypeError, "has to be a whole number; try k=20"),
        ({"k": None}, TypeError, "k=None has to be a whole number; try k=20"),
        ({"k": math.nan}, TypeError, "k=nan has to be a whole number; try k=20"),
        ({"k": -1}, ValueError, "k=-1 has to be at least 1; try k=20"),
        ({"k": [5, 10**400]}, ValueError, "k is at most 999,999,999; try k=20"),
        ({"tails": 0.3}, TypeError, r"tails is 0.3; give a list of shares"),
        ({"tails": [math.nan]}, ValueError, "level=nan has to be a share of users"),
        ({"tails": [True]}, TypeError, "level=True has to be a number; try level=0.3"),
        ({"tails": ["0.3"]}, TypeError, "level='0.3' has to be a number; try level=0.3"),
        ({"metrics": "recall"}, TypeError, "metrics is 'recall'; give a list of names"),
        ({"metrics": []}, ValueError, "metrics is empty; give at least one name"),
        ({"metrics": [3]}, ValueError, "unknown metric 3"),
        ({"on": None}, ValueError, "unknown part of the split None"),
        ({"name": 3}, TypeError, "name is 3; give the model's name as a text"),
        ({"batch": 1.5}, TypeError, "batch=1.5 has to be a whole number"),
        ({"batch": True}, TypeError, "batch=True has to be a whole number"),
        ({"settings": "x"}, TypeError, "settings is 'x'; give names and values, or None"),
    ],
)
def test_evaluate(model, split, given, error, message):
    with pytest.raises(error, match=message):
        evaluate(**{"model": model, "split": split, **given})


@pytest.mark.parametrize("cutoff", ["", "0", "-1", "1.5", "020", "٣", "²", "9" * 10, "9" * 5000])
def test_cutoffs_are_written_as_in_the_names_of_scores(cutoff):
    with pytest.raises(ValueError, match=r"' is no cutoff; try metric='recall@20'"):
        parse_metric(f"recall@{cutoff}")
    assert parse_metric("recall@999999999") == ("recall", 999_999_999)


def test_numbers_of_numpy_are_fine(model, split):
    found = evaluate(model, split, np.int64(5), np.array([0.3], np.float32), batch=np.int16(9))
    assert found.k == (5,)
    assert found.tails == (float(np.float32(0.3)),)
    assert evaluate(model, split, np.array([5, 10], np.uint8)).k == (5, 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e, _: e.tail(METRIC, None), TypeError, "level=None has to be a number"),
        (lambda e, _: e.tail(None, 0.3), ValueError, "unknown metric None"),
        (lambda e, _: e.interval(METRIC, 0.3, "0.9"), TypeError, "confidence='0.9' has to be a nu"),
        (lambda e, _: e.interval(METRIC, 0.3, math.nan), ValueError, "confidence=nan has to lie"),
        (lambda e, _: e.interval(METRIC, 0.3, True), TypeError, "confidence=True has to be a numb"),
        (lambda e, _: e.interval(METRIC, 0.3, 0.9, 10.5), TypeError, "resamples=10.5 has to be a "),
        (lambda e, _: e.groups(METRIC, seed=0.5), TypeError, "seed=0.5 has to be a whole number"),
        (lambda e, _: e.rows(METRIC), TypeError, "metrics is 'recall@20'; give a list of metrics"),
        (lambda e, _: e.rows(levels=[]), ValueError, "levels is empty; give at least one"),
        (lambda e, _: e.table(levels=0.3), TypeError, "levels is 0.3; give a list of shares"),
        (lambda e, _: e.tail_curve(METRIC, [2]), ValueError, "level=2 has to be a share of users"),
        (lambda e, _: e.quantile_curve(METRIC, 1), TypeError, "levels is 1; give a list of shar"),
        (lambda e, _: e.to_dict(level=math.inf), ValueError, "level=inf has to be a share of us"),
        (lambda e, _: tail_mean([0.1], "x"), TypeError, "level='x' has to be a number"),
        (lambda e, _: tail_profile(None, METRIC, 0.3), TypeError, "evaluation is of type NoneType"),
        (lambda e, _: find_floor(None, METRIC, 0.3), TypeError, "evaluations is None; give a list"),
        (lambda e, _: find_floor([], METRIC, 0.3), ValueError, "there is no evaluation; give at"),
        (lambda e, _: find_floor([3], METRIC, 0.3), TypeError, "an entry of evaluations is 3; gi"),
        (lambda e, _: parse_metric(None), TypeError, "metric is None; try metric='recall@20'"),
        (lambda e, _: over_splits(None), TypeError, "evaluations is None; give one evaluation"),
        (lambda e, _: over_splits([e, 3]), TypeError, "an entry of evaluations is 3; give what"),
        (lambda e, _: compare(None), TypeError, "evaluations is None; give a list of at least 2"),
        (lambda e, _: compare(e), TypeError, "evaluations is an Evaluation; give a list of at le"),
        (lambda e, _: compare([]), ValueError, "there are no evaluations; give at least 2"),
        (lambda e, _: compare([e, 3]), TypeError, "an entry of evaluations is 3; give what ev"),
        (lambda e, _: compare([e, [3]]), TypeError, "an entry of evaluations is 3; give what ev"),
        (lambda e, c: compare([c, c]), TypeError, "entry of evaluations is a Comparison; give"),
        (lambda e, c: c.difference(True, METRIC, 0.3), ValueError, "unknown model True"),
        (lambda e, c: c.difference(5, METRIC, 0.3), ValueError, "there is no model 5: 1 are com"),
        (lambda e, c: c.difference("b", METRIC, "x"), TypeError, "level='x' has to be a number"),
        (lambda e, c: c.differences("b", METRIC, 1), TypeError, "levels is 1; give a list of sh"),
        (lambda e, c: c.to_dict(METRIC), TypeError, "metrics is 'recall@20'; give names, such"),
        (lambda e, _: report(None, "x.html"), TypeError, "results is None; give what evaluate or"),
        (lambda e, _: report([e, 3], "x.html"), TypeError, "an entry of results is 3; give what"),
        (lambda e, _: report([], "x.html"), ValueError, "there is no evaluation to report on"),
        (lambda e, _: report(e, None), TypeError, "path is None; name the HTML file to write"),
        (lambda e, _: report(e, 3), TypeError, "path is 3; name the HTML file to write"),
        (lambda e, _: report(e, ""), ValueError, "path is empty; name the HTML file to write"),
        (lambda e, _: report(e, "x", title=3), TypeError, "title is 3; give a text, or None"),
        (lambda e, _: report(e, "x", level="x"), TypeError, "level='x' has to be a number"),
        (lambda e, _: report(e, "x", settings=3), TypeError, "settings is 3; give a text, or"),
        (lambda e, _: report(e, "x", data_summary=[1]), TypeError, "data_summary is a list; give"),
        (lambda e, _: report(e, "x", tuning=3), TypeError, "tuning is of type int; give what tune"),
    ],
)  # fmt: skip
def test_results(pair, tmp_path, monkeypatch, call, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call(pair[0], compare(pair, resamples=9))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "value"),
    [("baseline", 1.5), ("baseline", True), ("resamples", 9.5), ("seed", None), ("seed", True)],
)
def test_compare_takes_whole_numbers(pair, option, value):
    with pytest.raises(TypeError, match=rf"{option}={value} has to be a whole number; try"):
        compare(pair, **{option: value})


def test_versions_of_packages_are_looked_up_once(model, split, monkeypatch):
    looked_up = []
    monkeypatch.setattr(evaluator, "version", lambda name: looked_up.append(name) or "1")
    evaluator._versions.cache_clear()
    first, second = (evaluate(model, split, k=5).versions for _ in range(2))
    evaluator._versions.cache_clear()
    assert sorted(looked_up) == ["numpy", "safecf", "scipy"]
    assert first == second
    assert first is not second


def same(first, second):
    """Whether two evaluations hold the same."""
    pair = [{**each.to_dict(resamples=2), "checksum": ""} for each in (first, second)]
    return pair[0] == pair[1]


def test_any_changed_byte_is_refused_or_changes_nothing(made_up):
    evaluation = made_up("m", [0.0, 0.5, 1.0], settings={"seed": 1})
    content = json.dumps(evaluation.to_dict(resamples=2)).encode()
    outcomes = {"refused": 0, "loaded": 0}
    for place in range(len(content)):
        for value in {content[place] ^ 1, ord("0"), ord('"'), ord(" ")} - {content[place]}:
            changed = content[:place] + bytes([value]) + content[place + 1 :]
            try:
                found = Evaluation.from_dict(json.loads(changed))
            except ValueError:
                outcomes["refused"] += 1
            else:
                outcomes["loaded"] += 1
                assert same(found, evaluation), (place, value)
    assert outcomes["loaded"] < 0.01 * outcomes["refused"]  # spaces


def test_a_changed_comparison_is_refused(pair):
    record = compare(pair, resamples=9).to_dict()
    assert Comparison.from_dict(json.loads(json.dumps(record))).others[0].model == "b"
    record["verdicts"]["b"][METRIC] += "!"
    with pytest.raises(FileFormatError, match="its checksum does not fit, or"):
        Comparison.from_dict(record)


def test_a_checksum_taken_from_an_inner_evaluation_is_missed(pair):
    record = compare(pair, resamples=9).to_dict()
    del record["evaluations"][0]["checksum"]
    with pytest.raises(FileFormatError, match="its checksum does not fit, or"):
        Comparison.from_dict(record)


def test_only_files_of_version_0_1_have_no_checksum(pair):
    record = compare(pair, resamples=9).to_dict()
    for each in (record, *record["evaluations"]):
        del each["checksum"]
    for kind, without in ((Comparison, record), (Evaluation, record["evaluations"][0])):
        with pytest.raises(FileFormatError, match="its checksum does not fit, or"):
            kind.from_dict(without)
    for each in (record, *record["evaluations"]):
        each["format"] = each["format"].replace("2", "1")
    assert same(Comparison.from_dict(record).baseline, pair[0])


def test_few_users_in_the_tail_get_a_caution(made_up):
    few = made_up("m", [0.1, 0.2, 0.3, math.nan, 0.5])
    said = "the worst-off 30 % of 4 users are 1.2 users, too few for an interval: it takes 20"
    assert few.caution(METRIC, 0.3) == f"{said} of them, of 67 users"
    assert few.caution(METRIC, 1.0) == "4 users are too few for an interval: it takes 20"
    enough = made_up("m", np.linspace(0, 1, 67))
    assert enough.caution(METRIC, 0.3) == enough.caution(METRIC, 1.0) == ""
    alone = made_up("m", [0.5])
    assert alone.caution(METRIC, 1.0) == "1 user is too few for an interval: it takes 20"
    assert alone.caution(METRIC, 0.3) == "1 user is too few for an interval: it takes 67"
    assert enough.caution(METRIC, 0.2).endswith("it takes 20 of them, of 100 users")
    assert made_up("m", np.linspace(0, 1, 200)).caution(METRIC, 0.1) == ""
