"""Texts from outside, such as names, ids and paths, made safe to show."""

import re

# C0 and C1 controls, line and paragraph separators, bidirectional controls, lone surrogates
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


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
