"""Markup of the page: escaping, elements, and one format for each kind of number."""

import html
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from safecf.measures import tails
from safecf.texts import UNSAFE, visible

MISSING = "\u2013"
MINUS = "\u2212"
SPACE = "\u00a0"  # between a number and its unit, where a line must not break
SHAPES = {"path", "line", "rect", "circle", "use"}
MARKUP = re.compile("[<>&]")
LONGEST = 24  # characters of a name that stays on one line


def escape(text: object) -> str:
    """Make any text safe inside an element or a quoted attribute; write controls as escapes."""
    return html.escape(visible(text), quote=True)


def escape_lines(text: str) -> str:
    """Escape a text of several lines."""
    return "\n".join(map(escape, text.split("\n")))


def name(text: object) -> str:
    """Escape a name given by the user, and isolate its writing direction."""
    return f"<bdi>{escape(text)}</bdi>"


def typeset(text: str, names: Iterable[str] = ()) -> str:
    """Escape a sentence, and keep numbers with their units, intervals and names on one line."""
    known = sorted(filter(None, names), key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, known))})", text) if known else [text]
    return "".join(
        tag("bdi", escape(piece), class_="whole" if len(piece) <= LONGEST else None)
        if place % 2
        else _typeset(escape(piece))
        for place, piece in enumerate(pieces)
    )


def _typeset(text: str) -> str:
    text = re.sub(r"(?<=\d) %", f"{SPACE}%", text)
    text = re.sub(r"(?<![\w-])-(?=\d)", MINUS, text)
    return re.sub(r"\[(\S+), (\S+)\]", rf"[\1,{SPACE}\2]", text)


def tag(element: str, content: str = "", /, **attributes: object) -> str:
    """Write an element; `class_` becomes `class`, `data_level` `data-level`, None is left out.

    Shapes, which have no content, close themselves.

    >>> tag("td", "0.5", class_="number", data_level=0.3)
    '<td class="number" data-level="0.3">0.5</td>'
    """
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if element in SHAPES:
        return f"<{element}{written}/>"
    return f"<{element}{written}>{content}</{element}>"


def to_json(value: Any) -> str:
    """Write JSON that is safe inside a script element or an attribute."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for unsafe in (MARKUP, UNSAFE):
        text = unsafe.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def number(value: float) -> str:
    """Write a score: `0.1269`."""
    return f"{value:.4f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def short(value: float) -> str:
    """Write a value of unknown size with three digits: `0.127`, `31.6`, `1.2e-05`."""
    if not math.isfinite(value):
        return MISSING
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}".replace("-", MINUS)
    digits = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}".replace("-", MINUS)


def lift(value: float) -> str:
    """Write a relative difference in percent: `+8.6 %`."""
    return f"{value:+.1f}{SPACE}%".replace("-", MINUS) if math.isfinite(value) else MISSING


def signed(value: float) -> str:
    """Write an absolute difference: `+0.0101`."""
    return f"{value:+.4f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def percent(value: float) -> str:
    """Write a share: `30 %`, `2.5 %`."""
    return f"{100 * value:.3g}{SPACE}%" if math.isfinite(value) else MISSING


def count(value: float) -> str:
    """Write a number of things: `10,000`."""
    return f"{value:,.0f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def level_name(level: float) -> str:
    """Write `worst-off 30 %`, or `all users`, as a heading."""
    return tails.level_name(level).replace(" %", f"{SPACE}%")


def whom(level: float) -> str:
    """Write `the worst-off 30 %`, or `all users`, inside a sentence."""
    return tails.whom(level).replace(" %", f"{SPACE}%")


FORMATS: dict[str, Callable[[float], str]] = {
    "number": number,
    "short": short,
    "lift": lift,
    "signed": signed,
    "percent": percent,
    "count": count,
}


def interval(low: float, high: float, style: str) -> str:
    """Write an interval without its unit: `[5.1, 12.0]`; nothing if it is not finite."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    ends = [FORMATS[style](end).removesuffix(f"{SPACE}%") for end in (low, high)]
    return f"[{f',{SPACE}'.join(ends)}]"


def p_value(value: float) -> str:
    """Write a probability: `0.013`, `< 0.001`."""
    if not math.isfinite(value):
        return MISSING
    return f"<{SPACE}0.001" if value < 0.001 else f"{value:.3f}"
