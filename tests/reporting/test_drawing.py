"""Ticks, domains, gaps of lines, and the formats of numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.reporting import markup
from safecf.reporting.drawing import svg


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 10))
def test_ticks_are_few_round_and_inside(low: float, span: float, count: int) -> None:
    found = svg.ticks(low, low + span, count)
    assert len(found) <= count + 2
    slack = 1e-6 * (abs(low) + span)
    assert all(low - slack <= tick <= low + span + slack for tick in found)


@pytest.mark.parametrize("values", [[], [np.nan], [3.0], [0.0, 0.0], [1e-12, 1e12]])
def test_domains_are_never_empty(values: list[float]) -> None:
    low, high = svg.domain(values)
    assert low < high
    assert all(low <= value <= high for value in values if np.isfinite(value))
    low, high = svg.log_domain(values)
    assert 0 < low < high


def test_path_has_gaps_and_no_idle_points() -> None:
    xs = np.arange(6.0)
    assert svg.path(xs, np.array([0, 1, np.nan, 1, 2, 3.0])) == ("M0 0L1 1M3 1L4 2L5 3")
    assert svg.path(xs, np.array([0, 5, 5, 5, 5, 0.0])) == "M0 0L1 5L4 5L5 0"


def test_numbers_are_written_in_one_way() -> None:
    space = markup.SPACE
    assert markup.number(0.12345) == "0.1235"
    assert markup.lift(8.64) == f"+8.6{space}%"
    assert markup.lift(-0.5) == f"{markup.MINUS}0.5{space}%"
    assert markup.percent(0.3) == f"30{space}%"
    assert markup.percent(0.025) == f"2.5{space}%"
    assert markup.count(10_000) == "10,000"
    assert markup.short(31.64) == "31.6"
    assert markup.short(1.234e-5) == f"1.2e{markup.MINUS}05"
    assert markup.interval(5.14, 12, "lift") == f"[+5.1,{space}+12.0]"
    assert markup.interval(float("nan"), 1, "lift") == ""
    assert markup.p_value(0.0002) == f"<{space}0.001"
    assert {write(float("nan")) for write in markup.FORMATS.values()} == {markup.MISSING}


def test_json_cannot_end_its_script() -> None:
    assert markup.to_json("</script>\u2028&") == '"\\u003c/script\\u003e\\u2028\\u0026"'
