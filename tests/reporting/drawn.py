"""Charts of a page read back: coordinates as the numbers that the ticks of the axes give them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from safecf.reporting import report

POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class Plot:
    """A chart; `x` and `y` turn coordinates into numbers, and each tick has the one it says."""

    def __init__(self, svg: ElementTree.Element) -> None:
        self.svg, self.label = svg, svg.get("aria-label", "")
        self.x = self._axis("data-x", "middle", "x", 0)
        self.y = self._axis("data-y", "end", "y", 4)

    def _axis(self, key: str, anchor: str, at: str, shift: float) -> Any:
        low, high, start, end, log = map(float, self.svg.get(key, "").split())
        if log:
            low, high = np.log10([low, high])

        def numbers(places: Any) -> Any:
            found = low + (np.asarray(places) - start) / (end - start) * (high - low)
            return 10**found if log else found

        for each in self.svg.iter("text"):
            said = number(each.text or "", share=at == "x")
            if (each.get("class"), each.get("text-anchor")) == (None, anchor) and said is not None:
                place = float(each.get(at, "")) - shift
                near = sorted(numbers([place - 0.06, place + 0.06]))
                assert near[0] <= said <= near[1], (self.label, each.text)
        return numbers

    def points(self, element: ElementTree.Element) -> tuple[Any, Any]:
        """Return the numbers at the corners of a path, or at the place of a mark."""
        if "d" not in element.attrib:
            names = ("cx", "cy") if element.tag == "circle" else ("x", "y")
            return self.x(float(element.get(names[0], ""))), self.y(
                float(element.get(names[1], ""))
            )
        found = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", element.get("d", ""))
        across, up = np.array(found, dtype=float).reshape(-1, 2).T
        return self.x(across), self.y(up)

    def of(self, class_: str) -> list[ElementTree.Element]:
        """Return the elements of a class, in the order of the drawing."""
        return [each for each in self.svg.iter() if class_ in (each.get("class") or "").split()]

    @property
    def pixel(self) -> tuple[float, float]:
        """How much a pixel is, across and up, for linear axes."""
        return abs(self.x(1.0) - self.x(0.0)), abs(self.y(1.0) - self.y(0.0))


def number(text: str, *, share: bool) -> float | None:
    """Read a tick; `share` says whether 30 % is 0.3."""
    text = text.replace("\u2212", "-").replace("\xa0", " ").replace(",", "").replace("+", "")
    if power := re.fullmatch("10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text):
        return 10.0 ** int(power[1].translate(POWERS))
    percent = text.endswith(" %")
    try:
        found = float(text.removesuffix(" %"))
    except ValueError:
        return None
    return found / 100 if percent and share else found


def svgs(page: str) -> Iterator[ElementTree.Element]:
    """Yield the drawings of a page; those inside of others are parts of these."""
    depth, start = 0, 0
    for found in re.finditer(r"<svg\b|</svg>", page):
        if found[0] == "<svg":
            start = found.start() if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                yield ElementTree.fromstring(page[start : found.end()])


def plots(results: Any, folder: Path, label: str, **options: Any) -> list[Plot]:
    """Write a report; return the charts whose label has these words."""
    page = report(results, folder / "report.html", **options).read_text(encoding="utf-8")
    found = [each for each in svgs(page) if "data-x" in each.attrib]
    named = [Plot(each) for each in found if label in each.get("aria-label", "")]
    assert named, [each.get("aria-label") for each in found]
    return named
