"""Arguments of `tune` and of the parts of a search: each mistake is one line with a remedy."""

import math

import numpy as np
import pytest

from safecf import IALS, SAFER2, tune
from safecf.tuning import (
    Around,
    Choice,
    LogInteger,
    LogUniform,
    Objective,
    Uniform,
    grid,
    pareto_front,
    parse_range,
    suggest,
)
from tests.helpers import refused

SEARCHED = ("bandwidth", "regularization", "unobserved_weight")
SPACE = {"b": Uniform(0.1, 0.5)}

VALUES = [
    ({"trials": 0}, "trials=0 has to be at least 1"),
    ({"minutes": 0}, "minutes=0 has to be above 0"),
    ({"minutes": np.inf}, "minutes=inf has to be"),
    ({"metric": "recal@20"}, "did you mean 'recall'"),
    ({"metric": "recall"}, "metric='recall' has no cutoff; try metric='recall@20'"),
    ({"objective": "worst"}, "unknown objective 'worst'"),
    ({"level": 0}, "level=0 has"),
    ({"seed": -1}, "seed=-1 has to be"),
    ({"pick": "best"}, "unknown pick 'best'"),
    ({"pick": -1}, "pick=-1 has to be"),
    ({"trials": None, "pick": 50}, "pick=50 is no trial; give a number from 0 to 49"),
    ({"trials": 3, "pick": 3}, "pick=3 is no trial; give a number from 0 to 2"),
    ({"space": {"bandwith": Uniform(0, 1)}}, "did you mean 'bandwidth'"),
    ({"space": {"tail": Uniform(0.5, 2.0)}}, "tail=1.25 has to be in [1e-06, 1]"),
    ({"space": {"iterations": Uniform(5, 50)}}, "iterations is not searched: it is the best"),
    ({"space": dict.fromkeys(SEARCHED)}, "nothing to search for SAFER2"),
]
TYPES = [
    ({"trials": True}, "trials=True has to be a whole number; try trials=50"),
    ({"minutes": "5"}, "minutes='5' has to be a number; try minutes=10"),
    ({"metric": None}, "metric is None; try metric='recall@20'"),
    ({"level": "0.3"}, "level='0.3' has to be a number"),
    ({"seed": None}, "seed=None has to be a whole number"),
    ({"pick": 1.0}, "pick=1.0 has to be a whole number"),
    ({"show_progress": "no"}, "show_progress is 'no'; give True or False"),
    ({"settings": [1]}, "settings is a list; give names and values, or None"),
    ({"study": 3}, "study is 3; give the file of the study"),
    ({"against": IALS()}, "against is an IALS; give a list of models"),
    ({"against": [(IALS(), {}, 3)]}, "is no pair of a model and its space"),
    ({"against": [(IALS(), [1])]}, "space is a list; give ranges by option"),
    ({"space": {"tail": 0.3}}, "the range of tail is 0.3; give a range, such as LogUniform"),
    ({"model": 3}, "cannot be tuned; give a model of safecf"),
    ({"data": np.ones((3, 3))}, "data is a ndarray; give a Split or an Interactions"),
    ({"model": SAFER2(random_state=np.random.default_rng(0))}, "integer in tuning; try random"),
]
CALLS = [
    (lambda: suggest(None, [], 1, 0), TypeError, "space is None; give ranges by option"),
    (lambda: suggest({"b": 3}, [], 1, 0), TypeError, "the range of b is 3; give a range"),
    (lambda: suggest(SPACE, [], 1.5, 0), TypeError, "count=1.5 has to be a whole number"),
    (lambda: suggest(SPACE, [], -1, 0), ValueError, "count=-1 has to be at least 0"),
    (lambda: grid([1]), TypeError, "space is a list; give ranges by option"),
    (lambda: parse_range(None, {}), TypeError, "text is None; try 'bandwidth=0.05..0.5'"),
    (lambda: pareto_front(None), TypeError, "trials is None; give a list of trials"),
    (lambda: pareto_front([3]), TypeError, "an entry of trials is 3; give trials of a search"),
    (lambda: Uniform("0", 1), TypeError, "low='0' has to be a number"),
    (lambda: Uniform(0, True), TypeError, "high=True has to be a number"),
    (lambda: Uniform(0, math.nan), ValueError, "high nan; give low <= high, both finite"),
    (lambda: LogUniform(0, 1), ValueError, "low <= high, both finite"),
    (lambda: LogUniform(2, 1), ValueError, "low <= high, both finite"),
    (lambda: LogUniform(1, 2, 0), ValueError, "points=0 has to be at least 1"),
    (lambda: LogInteger(1.5, 2), TypeError, "low=1.5 has to be a whole number"),
    (lambda: Choice("abc"), TypeError, "values is 'abc'; give a list"),
    (lambda: Choice(()), ValueError, "a choice has no values"),
    (lambda: Around(0.5), ValueError, "factor=0.5 has to be above 1"),
    (lambda: Around("5"), TypeError, "factor='5' has to be a number"),
    (lambda: Objective(level="x"), TypeError, "level='x' has to be a number"),
    (lambda: Objective(level=2), ValueError, "level=2 has to be a share of users"),
    (lambda: Objective(metric=3), TypeError, "metric is 3; try metric='recall@20'"),
    (lambda: Objective(kind="median"), ValueError, "'median': did you mean 'mean'"),
]
RANGES = [
    ("regularization", "'regularization' is no range; try bandwidth=0.05..0.5"),
    ("bandwidth=1..2", "unknown option 'bandwidth'"),
    ("factor=1..2", "did you mean 'factors'"),
    ("regularization=a..b", "has no two numbers as its ends; try regularization=0.05..0.5"),
    ("regularization=2..1", "low is 2 and high 1; give 0 < low <= high"),
    ("regularization=1..inf", "low is 1 and high inf; give 0 < low <= high, both finite"),
    ("regularization=1..1" + 400 * "0", "both finite"),
    ("regularization=-1e308..1e308", "with a finite difference"),
    ("factors=1..10000000000", "high is above 2,147,483,647; give a smaller one"),
    ("regularization=" + "-" * 5000 + "1..2", "has no two numbers as its ends"),
]


@pytest.mark.parametrize(
    ("error", "options", "words"),
    [(ValueError, *each) for each in VALUES] + [(TypeError, *each) for each in TYPES],
)
def test_arguments_of_tune(split, error, options, words):
    given = {"model": SAFER2(8, iterations=12), "data": split, "trials": 1}
    with refused(error, words):
        tune(**given | {"show_progress": False, **options})


@pytest.mark.parametrize(("call", "error", "words"), CALLS)
def test_arguments_of_its_parts(call, error, words):
    with refused(error, words):
        call()


@pytest.mark.parametrize(("text", "words"), RANGES)
def test_ranges_as_texts(text, words):
    with refused(ValueError, words):
        parse_range(text, IALS().get_params())
