"""Tests that take long: left out unless SAFECF_LONG is set, as it is in continuous integration."""

import os

import pytest

LONG = pytest.mark.skipif(
    not os.environ.get("SAFECF_LONG"), reason="a long test: set SAFECF_LONG=1"
)
