"""Tests that take long: left out unless SAFECF_LONG is set, as it is in continuous integration."""

import os

import pytest

LONG = pytest.mark.skipif(
    not os.environ.get("SAFECF_LONG"), reason="a long test: set SAFECF_LONG=1"
)


def some_long(values, is_long):
    """Return values for `parametrize`, of which some make a test long."""
    return [pytest.param(each, marks=LONG) if is_long(each) else each for each in values]
