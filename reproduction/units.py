"""Numbers in the patterns of pages: units, and three digits."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

FACTORS = {
    "ms": 1e3,
    "us": 1e6,
    "MB": 1e-6,
    "GB": 1e-9,
    "G": 1e-9,
    "T": 1e-12,
    "MiB": 2**-20,
    "GiB": 2**-30,
}
SPEC = re.compile(rf"({'|'.join(sorted(FACTORS, key=len, reverse=True))})?(.*)")


def short(value: float) -> str:
    """Write a number with three digits, or all of those before the point.

    >>> short(0.01234), short(1234.5)
    ('0.0123', '1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


class Units(Formatter):
    """`str.format` with units before the format, and "short" for three digits.

    >>> Units().format("{seconds:msshort} ms, {size[peak]:GiB.1f} GiB", **row)
    '15.2 ms, 4.3 GiB'
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value."""
        unit, spec = SPEC.fullmatch(format_spec).groups()  # type: ignore[union-attr]
        if unit:
            value = value * FACTORS[unit]
        return short(value) if spec == "short" else format(value, spec)

    def field(self, name: str, row: Mapping[str, Any]) -> Any:
        """Return what a name such as "size[peak]" stands for, None if it is not there."""
        try:
            return self.get_field(name, (), row)[0]
        except (KeyError, TypeError):
            return None
