"""Texts from outside: values that are typed, and names, ids and paths made safe to show."""

import ast
import re
import warnings
from typing import Any

# C0 and C1 controls, line and paragraph separators, bidirectional controls, lone surrogates
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which UTF-8 cannot encode
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def parse_value(text: str) -> Any:
    """Read a value as Python writes it, or `inf`; any other text is itself.

    >>> parse_value("0.5"), parse_value("inf"), parse_value("gaussian"), parse_value("{[]}")
    (0.5, inf, 'gaussian', '{[]}')
    """
    if text == "inf":
        return float(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parser, as for the text "0or"
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return text


def visible(text: object) -> str:
    r"""Write characters that a terminal or a browser acts on as escapes.

    >>> visible("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return UNSAFE.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
