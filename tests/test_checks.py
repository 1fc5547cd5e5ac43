"""Checks of arguments."""

import math
from fractions import Fraction

import numpy as np
import pytest

from safecf.checks import check_integer, check_list, check_number, check_type


def test_numbers_of_numpy_are_numbers():
    assert check_integer("k", np.int32(5), 1, 20) == 5
    assert check_number("level", np.float32(0.5), 0.3) == 0.5
    assert check_number("level", Fraction(1, 4), 0.3) == 0.25
    assert check_number("level", 10**400, 0.3) == math.inf


@pytest.mark.parametrize("value", [5.0, True, np.True_, "5", None, [5]])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError, match=r"^k=.* has to be a whole number; try k=20$"):
        check_integer("k", value, 1, 20)


@pytest.mark.parametrize("value", [True, np.False_, "0.3", 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=r"^level=.* has to be a number; try level=0\.3$"):
        check_number("level", value, 0.3)


@pytest.mark.parametrize(("value", "said"), [("ab", "'ab'"), ({}, "a dict"), (None, "None")])
def test_what_is_no_list_is_refused(value, said):
    with pytest.raises(TypeError, match=f"^k is {said}; try k=1$"):
        check_list("k", value, "try k=1")
    assert check_list("k", range(2), "try k=1") == [0, 1]


def test_types():
    check_type("name", "x", (str, type(None)), "give a text")
    with pytest.raises(TypeError, match=r"^name is an object; give a text$"):
        check_type("name", object(), (str, type(None)), "give a text")
