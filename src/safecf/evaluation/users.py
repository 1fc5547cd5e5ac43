"""`UserProfile`: who the evaluated users are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class UserProfile:
    """Who the evaluated users are, one entry per user.

    Parameters
    ----------
    history_length
        Number of items that the model was shown.
    target_count
        Number of held-out items.
    popularity
        Mean popularity of the items in the history, 0 (the rarest in training) to 1 (the most
        popular); NaN without a history.
    group
        The user's label, if the data have groups.
    """

    history_length: NDArray[np.int64]
    target_count: NDArray[np.int64]
    popularity: NDArray[np.float64]
    group: NDArray[Any] | None = None
