"""Texts from outside, made safe to show."""

import pytest

from safecf.texts import visible


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
