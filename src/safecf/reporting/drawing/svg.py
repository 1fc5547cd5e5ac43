"""Scales, ticks and shapes of the charts."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from safecf.measures.tails import Floats
from safecf.reporting.markup import escape, tag

MARGIN = 0.06  # on both sides of the values, as a share of their span


@dataclass(frozen=True)
class Scale:
    """Maps [low, high] of the data to [start, end] of the drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: ArrayLike) -> Floats:
        """Return the positions of `values`, clipped to the neighbourhood of the drawing."""
        data = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            data, low, high = np.log10(np.maximum(data, 1e-300)), math.log10(low), math.log10(high)
        share = np.clip((data - low) / (high - low), -2.0, 3.0)
        return np.asarray(self.start + share * (self.end - self.start))

    def at(self, value: float) -> float:
        """Return the position of one value."""
        return float(self(value))

    def ticks(self, count: int = 5) -> list[float]:
        """Return about `count` round values inside the scale."""
        if not self.log:
            return ticks(self.low, self.high, count)
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        step = max(1, math.ceil((last - first + 1) / count))
        return [10.0**power for power in range(first, last + 1, step)]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return multiples of 1, 2, 2.5 or 5 times a power of ten from `low` to `high`.

    >>> ticks(0, 1, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    least = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * 0.999)
    digits = max(0, 1 - math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(multiple * step, digits) + 0.0 for multiple in range(first, last + 1)]


def domain(values: ArrayLike) -> tuple[float, float]:
    """Return a range of positive length that holds all finite values, with a margin."""
    data = np.asarray(values, dtype=np.float64).ravel()
    data = data[np.isfinite(data)]
    if data.size == 0:
        return 0.0, 1.0
    low, high = float(data.min()), float(data.max())
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):
        span = abs(high) or 1.0
        return low - span / 2, high + span / 2
    return low - MARGIN * span, high + MARGIN * span


def log_domain(values: ArrayLike) -> tuple[float, float]:
    """Return whole powers of ten that hold all positive values."""
    data = np.asarray(values, dtype=np.float64).ravel()
    data = data[np.isfinite(data) & (data > 0)]
    if data.size == 0:
        return 0.1, 1.0
    low, high = math.floor(math.log10(data.min())), math.ceil(math.log10(data.max()))
    return 10.0**low, 10.0 ** max(high, low + 1)


def path(xs: Floats, ys: Floats, *, closed: bool = False) -> str:
    """Return path data through the finite points, with a gap at the others.

    Points in the middle of a horizontal stretch are left out.
    """
    written = [
        (place(x), place(y)) if math.isfinite(x) and math.isfinite(y) else None
        for x, y in zip(xs, ys, strict=True)
    ]
    pieces, pen = [], "M"
    for index, point in enumerate(written):
        if point is None:
            pen = "M"
            continue
        around = written[index - 1 : index] + written[index + 1 : index + 2]
        if len(around) == 2 and all(each is not None and each[1] == point[1] for each in around):
            continue
        pieces.append(f"{pen}{point[0]} {point[1]}")
        pen = "L"
    return "".join(pieces) + ("Z" if closed and pieces else "")


def band(xs: Floats, lows: Floats, highs: Floats) -> str:
    """Return path data of the area between two curves, where both are finite."""
    known = np.isfinite(xs) & np.isfinite(lows) & np.isfinite(highs)
    around = np.concatenate([xs[known], xs[known][::-1]])
    return path(around, np.concatenate([highs[known], lows[known][::-1]]), closed=True)


def text(x: float, y: float, content: str, class_: str = "", anchor: str = "start") -> str:
    """Write a label."""
    return tag(
        "text",
        escape(content),
        x=place(x),
        y=place(y),
        class_=class_ or None,
        text_anchor=None if anchor == "start" else anchor,
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Draw a straight line."""
    return tag("path", d=segment(x1, y1, x2, y2), class_=class_)


def segment(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return path data of a straight line; several can be joined to one path."""
    return f"M{place(x1)} {place(y1)}L{place(x2)} {place(y2)}"


def rect(x: float, y: float, width: float, height: float, class_: str) -> str:
    """Draw a rectangle."""
    return tag(
        "rect",
        x=place(x),
        y=place(y),
        width=place(max(width, 0)),
        height=place(max(height, 0)),
        class_=class_,
    )


def place(value: float) -> str:
    """Write a coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


# One shape per series, so that lines can be told apart without colour.
_MARKERS = (
    "M-3.5 0A3.5 3.5 0 1 1 3.5 0A3.5 3.5 0 1 1-3.5 0Z",
    "M-3.2-3.2H3.2V3.2H-3.2Z",
    "M0-4.4L4.2 3.2H-4.2Z",
    "M0-4.6L4.6 0L0 4.6L-4.6 0Z",
    "M0 4.4L4.2-3.2H-4.2Z",
    "M-4-1.2H-1.2V-4H1.2V-1.2H4V1.2H1.2V4H-1.2V1.2H-4Z",
)


def marker_shapes() -> str:
    """Define the shapes of the markers, once per page."""
    return "".join(
        tag("path", id=f"m{number}", d=shape, class_="marker")
        for number, shape in enumerate(_MARKERS)
    )


def marker(x: float, y: float, style: int) -> str:
    """Draw the marker of series `style` at a point."""
    return tag("use", href=f"#m{style % len(_MARKERS)}", x=place(x), y=place(y))
