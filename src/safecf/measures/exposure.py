"""Exposure: how the recommendations to all users together spread over the catalogue.

In the equations e_i is the number of users who get item i among their first K, |V| the number of
items.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.measures.hits import Counts


def coverage(exposure: Counts) -> float:
    """Coverage = |{i: e_i > 0}| / |V|: the share of the catalogue that anybody gets to see."""
    return float(np.mean(exposure > 0))


def gini(exposure: Counts) -> float:
    """Gini = sum_j (2 j - |V| - 1) e_(j) / (|V| sum_i e_i), with e_(1) <= e_(2) <= ...

    0 if all items are recommended equally often, near 1 if one item takes everything.
    """
    ordered, items = np.sort(exposure), exposure.size
    if ordered[-1] == 0:
        return float("nan")
    weight = 2 * np.arange(1, items + 1) - items - 1
    return float((weight @ ordered) / (items * ordered.sum()))


EXPOSURE: dict[str, Callable[[Counts], float]] = {"coverage": coverage, "gini": gini}


def count_exposure(ranked: NDArray[np.integer[Any]], num_items: int, k: int) -> Counts:
    """e_i = number of rows of `ranked` with item i among the first K; -1 is padding."""
    return np.bincount(ranked[:, :k].ravel() + 1, minlength=num_items + 1)[1:]
