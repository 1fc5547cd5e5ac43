"""Arguments of the wrong type or without a meaning: one clear line from every public function."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf import IALS, compare, evaluate, report
from safecf.evaluation import find_floor, over_splits, parse_metric, tail_mean, tail_profile
from tests.helpers import refused

METRIC = "recall@20"
NO_NUMBER = st.sampled_from([None, "0.3", "", True, False, {}, 1j])
WHOLE = NO_NUMBER | st.integers(max_value=-1) | st.floats()
SHARE = NO_NUMBER | st.floats(max_value=0) | st.floats(1, exclude_min=True)
SHARE |= st.sampled_from([math.nan, 10**400])
INSIDE = SHARE | st.just(1.0)
SHARES = st.sampled_from([0.3, 1, True, "recall", b"x", {}, []])
SHARES |= st.lists(SHARE, min_size=1, max_size=2)
CUTOFFS = WHOLE | st.sampled_from([0, 10**10, []]) | st.lists(WHOLE, min_size=1, max_size=2)
NAMES = st.sampled_from([0.3, True, "recall", b"x", {METRIC: 1}, [3], ["recal"], [None]])
NO_NAME = st.sampled_from([None, 3, "recal", "", True])
NO_TEXT = st.sampled_from([3, 0.5, True, b"x", [1]])
NO_FACTS = st.sampled_from([3, 0.5, True, [1]])
NO_PLACE = WHOLE.filter(lambda each: each not in (-1, -2))  # of two
NO_MODEL_NAME = NO_NAME.filter(lambda each: each != 3)
NO_LEVEL = SHARE.filter(lambda each: each is not True)
NO_MODEL = st.sampled_from([None, IALS, 3])
RESULTS = st.sampled_from([None, 3, "x", [], [3], [[3]], IALS()])

# By function and argument: bad values, a call with one, and a word of its error.
CALLS = {
    "evaluate model": (
        st.sampled_from([None, IALS, 3]),
        lambda s, v: evaluate(v, s.split),
        "model",
    ),
    "evaluate split": (st.sampled_from([None, 3]), lambda s, v: evaluate(s.model, v), "split"),
    "evaluate k": (CUTOFFS, lambda s, v: evaluate(s.model, s.split, v), "k"),
    "evaluate tails": (SHARES, lambda s, v: evaluate(s.model, s.split, tails=v), ""),
    "evaluate metrics": (NAMES, lambda s, v: evaluate(s.model, s.split, metrics=v), "metric"),
    "evaluate on": (NO_NAME, lambda s, v: evaluate(s.model, s.split, on=v), "part of the split"),
    "evaluate name": (NO_TEXT, lambda s, v: evaluate(s.model, s.split, name=v), "name"),
    "evaluate batch": (WHOLE, lambda s, v: evaluate(s.model, s.split, batch=v), "batch"),
    "evaluate settings": (
        NO_FACTS,
        lambda s, v: evaluate(s.model, s.split, settings=v),
        "settings",
    ),
    "tail metric": (NO_NAME, lambda s, v: s.one.tail(v, 0.3), "unknown metric"),
    "tail level": (SHARE, lambda s, v: s.one.tail(METRIC, v), "level"),
    "interval confidence": (INSIDE, lambda s, v: s.one.interval(METRIC, 1, v), "confidence"),
    "interval resamples": (WHOLE, lambda s, v: s.one.interval(METRIC, 1, 0.9, v), "resamples"),
    "groups seed": (WHOLE, lambda s, v: s.one.groups(METRIC, seed=v), "seed"),
    "rows metrics": (NAMES, lambda s, v: s.one.rows(v), "metric"),
    "rows levels": (SHARES, lambda s, v: s.one.rows(levels=v), "level"),
    "table levels": (SHARES, lambda s, v: s.one.table(levels=v), "level"),
    "tail_curve levels": (SHARES, lambda s, v: s.one.tail_curve(METRIC, v), "level"),
    "quantile_curve levels": (SHARES, lambda s, v: s.one.quantile_curve(METRIC, v), "level"),
    "to_dict level": (SHARE, lambda s, v: s.one.to_dict(v), "level"),
    "tail_mean level": (SHARE, lambda s, v: tail_mean([0.1], v), "level"),
    "tail_profile": (RESULTS, lambda s, v: tail_profile(v, METRIC, 0.3), "evaluation"),
    "find_floor": (RESULTS, lambda s, v: find_floor(v, METRIC, 0.3), "evaluation"),
    "over_splits": (RESULTS, lambda s, v: over_splits(v), "evaluation"),
    "compare": (RESULTS, lambda s, v: compare(v), "evaluations"),
    "compare one": (RESULTS, lambda s, v: compare([s.one, v]), ""),
    "compare comparisons": (st.just(0), lambda s, _: compare([s.two] * 2), "is a Comparison; give"),
    "compare baseline": (
        WHOLE.filter(lambda v: v not in (-1, -2)),
        lambda s, v: compare(s.pair, v),
        "baseline",
    ),
    "compare resamples": (WHOLE, lambda s, v: compare(s.pair, resamples=v), "resamples"),
    "compare seed": (WHOLE, lambda s, v: compare(s.pair, seed=v), "seed"),
    "difference model": (
        NO_NAME.filter(lambda v: v != 3),
        lambda s, v: s.two.difference(v, METRIC, 0.3),
        "model",
    ),
    "difference level": (
        SHARE.filter(lambda v: v is not True),
        lambda s, v: s.two.difference("b", METRIC, v),
        "level",
    ),
    "differences levels": (SHARES, lambda s, v: s.two.differences("b", METRIC, v), "level"),
    "comparison metrics": (NAMES, lambda s, v: s.two.to_dict(v), "metric"),
    "parse_metric": (NO_NAME, lambda s, v: parse_metric(v), "metric"),
    "report": (RESULTS, lambda s, v: report(v, s.path), ""),
    "report path": (st.sampled_from([None, 3, ""]), lambda s, v: report(s.one, v), "path"),
    "report title": (NO_TEXT, lambda s, v: report(s.one, s.path, title=v), "title"),
    "report level": (SHARE, lambda s, v: report(s.one, s.path, level=v), "level"),
    "report settings": (NO_FACTS, lambda s, v: report(s.one, s.path, settings=v), "settings"),
    "report data": (NO_FACTS, lambda s, v: report(s.one, s.path, data_summary=v), "data_summary"),
    "report tuning": (NO_FACTS, lambda s, v: report(s.one, s.path, tuning=v), "tuning"),
}


@pytest.fixture(scope="module")
def given_things(split, made_up, tmp_path_factory):
    model = IALS(4, iterations=2, random_state=0).fit(split.train, show_progress=False)
    pair = [made_up(name, np.linspace(0, high, 12)) for name, high in (("a", 0.5), ("b", 0.9))]
    path = tmp_path_factory.mktemp("reports") / "page.html"
    two = compare(pair, resamples=9)
    return SimpleNamespace(model=model, split=split, one=pair[0], pair=pair, two=two, path=path)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=20)
@given(drawn=st.data())
def test_a_bad_argument_is_one_clear_line(given_things, name, drawn):
    values, call, word = CALLS[name]
    with refused((TypeError, ValueError), word):
        call(given_things, drawn.draw(values))
    assert not given_things.path.exists()


EXACT = {
    "evaluations is None; give one evaluation for": lambda s: over_splits(None),
    "evaluations is None; give a list, as in": lambda s: find_floor(None, METRIC, 0.3),
    "an entry of evaluations is 3; give what": lambda s: compare([s.one, 3]),
    "baseline=True has to be a whole number": lambda s: compare(s.pair, True),
    "levels is 1; give a list of shares": lambda s: s.one.rows(levels=1),
    "there is no model 5: 1 are compared": lambda s: s.two.difference(5, METRIC, 0.3),
}


@pytest.mark.parametrize("said", EXACT)
def test_errors_name_the_argument(given_things, said):
    with pytest.raises((TypeError, ValueError), match=f"^{said}"):
        EXACT[said](given_things)


@pytest.mark.parametrize("cutoff", ["", "0", "-1", "1.5", "020", "٣", "²", "9" * 10, "9" * 5000])
def test_cutoffs_are_written_as_in_the_names_of_scores(cutoff):
    with pytest.raises(ValueError, match=r"' is no cutoff; try metric='recall@20'"):
        parse_metric(f"recall@{cutoff}")
    assert parse_metric("recall@999999999") == ("recall", 999_999_999)


def test_numbers_of_numpy_are_fine(given_things):
    model, split = given_things.model, given_things.split
    found = evaluate(model, split, np.int64(5), np.array([0.3], np.float32), batch=np.int16(9))
    assert found.k == (5,)
    assert found.tails == (float(np.float32(0.3)),)
    assert evaluate(model, split, np.array([5, 10], np.uint8)).k == (5, 10)


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
