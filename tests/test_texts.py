"""Texts from outside: values that are typed, and texts made safe to show."""

import math
import warnings

import pytest

from safecf.texts import parse_value, visible


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0.5", 0.5), ("32", 32), ("-1e-3", -0.001), ("inf", math.inf), ("None", None)),
        *(("True", True), ("'a b'", "a b"), ("(1, 2)", (1, 2)), ("[8]", [8])),
    ],
)
def test_values_are_read_as_python_writes_them(text, value):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "gaussian", "{[]}", "-" * 200_000 + "1", "1+" * 50_000 + "1", "(" * 300),
        *("9" * 5000, "a\0b", "\ud800", "__import__('os')", "0or", "'\\d", "{**1}"),
    ],
)
def test_any_other_text_is_itself(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\x1b[31mred", r"a\x1b[31mred"),
        ("two\nlines\r\t", r"two\nlines\r\t"),
        ("\x00\x7f\x85", r"\x00\x7f\x85"),
        ("\u2028\u202e\u2066\udc80", r"\u2028\u202e\u2066\udc80"),
        ("naïve 日本 👩\u200d🔬 [b]<i>", "naïve 日本 👩\u200d🔬 [b]<i>"),
    ],
)
def test_what_a_terminal_acts_on_is_written_as_escapes(text, said):
    assert visible(text) == said
