"""`shown`: values from files, shortened for messages."""

import pytest

from safecf.errors import shown


@pytest.mark.parametrize("value", ["", "a'b", None, [1, 2], "x" * 60])
def test_short_values_are_shown_whole(value):
    assert shown(value) == repr(value)


def test_long_values_are_cut():
    assert shown("x" * 61) == repr("x" * 60 + "…")
    assert shown(list(range(1000)), longest=10) == "[0, 1, 2, …"
