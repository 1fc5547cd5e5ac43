"""Search spaces: values inside their ranges, grids, texts, and Optuna's distributions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf import SAFER2
from safecf.tuning import Around, Choice, LogInteger, LogUniform, Uniform, grid, parse_range

SPACE = {"a": LogUniform(1e-4, 1e-2), "b": Uniform(0.1, 0.5, 3), "c": Choice(("x", "y"))}


@given(st.floats(1e-6, 1e3), st.floats(1, 1e4), st.floats(0, 1))
def test_rounding_stays_inside(low, ratio, share):
    high = low * ratio
    value = low + share * (high - low)
    for each in (LogUniform(low, high), Uniform(low, high)):
        rounded = each.rounded(value)
        assert each.contains(rounded)
        assert rounded == pytest.approx(value, rel=5e-3) or rounded in (low, high)


def test_grids_reach_both_ends():
    assert LogUniform(1e-4, 1e-2).grid() == [1e-4, 0.000316, 1e-3, 0.00316, 1e-2]
    assert LogInteger(16, 64, 3).grid() == [16, 32, 64]
    assert Uniform(0.1, 0.5, 3).grid() == [0.1, 0.3, 0.5]
    found = grid(SPACE)
    assert len(found) == 5 * 3 * 2
    assert found[0] == {"a": 1e-4, "b": 0.1, "c": "x"}
    assert len({tuple(each.values()) for each in found}) == len(found)


def test_places_are_shares_of_the_range():
    assert LogUniform(0.01, 1.0).place(0.1) == pytest.approx(0.5)
    assert Uniform(-1.0, 3.0).place(0.0) == 0.25
    assert [Uniform(2.0, 2.0).place(2.0), LogUniform(2.0, 2.0).place(2.0)] == [0.0, 0.0]
    assert Choice((1, 2)).place(1) is None


ALL_FLOATS = [LogUniform(5e-324, 1.7e308), LogUniform(1, 10**30), LogInteger(1, 2**31 - 1)]
ALL_FLOATS += [Uniform(-8e307, 8e307), Uniform(0, 10**30)]


@pytest.mark.parametrize("each", ALL_FLOATS)
def test_ranges_over_all_floats_have_finite_grids_and_places(each):
    values = each.grid()
    assert values == sorted(values)
    assert (values[0], values[-1]) == (each.low, each.high)
    places = [each.place(value) for value in values]
    assert places == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=1e-2)


def test_the_text_of_a_range_tells_it_from_others():
    assert str(LogInteger(1_000_001, 2_000_000)) == "1000001 to 2000000"
    assert str(LogUniform(0.02, 0.5)) == "0.02 to 0.5"


def test_wider_values_are_outside():
    for each in (LogUniform(0.01, 1.0), Uniform(-1.0, 3.0), LogInteger(1, 64)):
        below, above = each.wider()
        assert below < each.low <= each.high < above
    assert Choice((1, 2)).wider() == []


def test_ranges_around_a_default_have_it_in_the_middle():
    found = Around(8).at(0.004)
    assert found.place(0.004) == pytest.approx(0.5)
    assert (found.low, found.high) == (0.0005, 0.032)
    fixed = Uniform(0.2, 0.8)
    assert fixed.at(0.5) is fixed


def test_distributions_are_the_same_ranges():
    for each, is_log in ((LogUniform(0.1, 2.0), True), (Uniform(0.1, 2.0), False)):
        made = each.distribution()
        assert (made.low, made.high, made.log) == (0.1, 2.0, is_log)
    made = LogInteger(16, 64).distribution()
    assert (type(made).__name__, made.low, made.high, made.log) == ("IntDistribution", 16, 64, True)
    assert Choice(("x", "y")).distribution().choices == ("x", "y")


TEXTS = {
    "bandwidth=0.05..0.5": ("bandwidth", LogUniform(0.05, 0.5)),
    "normalisation = 0 .. 1": ("normalisation", Uniform(0, 1)),
    "bandwidth=1..2": ("bandwidth", LogUniform(1, 2)),  # not an integer by default
    "factors=16..64": ("factors", LogInteger(16, 64)),
    "kernel=gaussian,logistic": ("kernel", Choice(("gaussian", "logistic"))),
    "tail=0.2, 0.3": ("tail", Choice((0.2, 0.3))),
    "bandwidth=0.1,inf": ("bandwidth", Choice((0.1, math.inf))),
    "kernel={[]}": ("kernel", Choice(("{[]}",))),
}


@pytest.mark.parametrize("text", TEXTS)
def test_ranges_as_texts(text):
    assert parse_range(text, SAFER2().get_params()) == TEXTS[text]
