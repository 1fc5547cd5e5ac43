"""`Summary`: counts, density and quantiles of a data set."""

import html
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = {"min": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "90 %": 0.9, "max": 1.0}


@dataclass(frozen=True)
class Summary:
    """Counts of users, items and interactions, and how unequal users and items are.

    `per_user` and `per_item` are quantiles of the number of interactions: "min", "25 %", "median",
    "75 %", "90 %" and "max".

    >>> print(interactions.summary())
    users                  6,038
    items                  3,533
    interactions         575,281
    density                2.7 %
    <BLANKLINE>
                          min     25 %   median     75 %     90 %      max
    items of a user         1       27       58      124      225    1,435
    users of an item        1       13       49      183      457    2,853
    """

    users: int
    items: int
    interactions: int
    density: float
    per_user: dict[str, float]
    per_item: dict[str, float]
    weighted: bool

    @classmethod
    def of(
        cls,
        user_lengths: NDArray[np.int64],
        item_lengths: NDArray[np.int64],
        *,
        weighted: bool,
    ) -> "Summary":
        """Summarise the numbers of items per user, and of users per item."""
        interactions = int(user_lengths.sum())
        pairs = user_lengths.size * item_lengths.size
        return cls(
            users=user_lengths.size,
            items=item_lengths.size,
            interactions=interactions,
            density=interactions / pairs if pairs else 0.0,
            per_user=_quantiles(user_lengths),
            per_item=_quantiles(item_lengths),
            weighted=weighted,
        )

    def _counts(self) -> list[tuple[str, str]]:
        return [
            ("users", f"{self.users:,}"),
            ("items", f"{self.items:,}"),
            ("interactions", f"{self.interactions:,}" + (" (weighted)" if self.weighted else "")),
            ("density", f"{100 * self.density:.3g} %"),
        ]

    def _spread(self) -> list[tuple[str, list[str]]]:
        rows = (("items of a user", self.per_user), ("users of an item", self.per_item))
        return [(name, [_number(row[level]) for level in LEVELS]) for name, row in rows]

    def __str__(self) -> str:
        lines = [f"{name:<16}{value:>12}" for name, value in self._counts()]
        lines += ["", " " * 16 + "".join(f"{level:>9}" for level in LEVELS)]
        lines += [name.ljust(16) + "".join(f"{v:>9}" for v in row) for name, row in self._spread()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        counts = "".join(row([name, value], "td") for name, value in self._counts())
        spread = "".join(row([name, *cells], "td") for name, cells in self._spread())
        return (
            f"<table>{counts}</table><table><thead>{row(['', *LEVELS], 'th')}</thead>"
            f"<tbody>{spread}</tbody></table>"
        )


def _quantiles(lengths: NDArray[np.int64]) -> dict[str, float]:
    found = np.quantile(lengths, list(LEVELS.values())) if lengths.size else np.zeros(len(LEVELS))
    return dict(zip(LEVELS, found.tolist(), strict=True))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"
