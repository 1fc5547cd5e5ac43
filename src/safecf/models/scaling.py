"""Self-scaling options: what "auto" means on given data; docs/defaults.md has the evidence."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.als.loss import Loss, Vector
from safecf.als.rows import Problem
from safecf.defaults import AUTO

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models.als import ALSModel

# How much the unobserved pairs of an average user weigh, where the observed ones weigh 1.
UNOBSERVED = 15.0
# The ridge of data with many long histories, of little data, and how it grows in between.
REGULARIZATION = (0.005, 0.02)
SCARCITY = 8.0
# The bandwidth in standard deviations of the losses.
RELATIVE_BANDWIDTH = 1.5


class DataSums(NamedTuple):
    """Sums over the users that count; those of parts of the users add up.

    `users`: |U|, `pairs`: sum n_u, `squares`: sum n_u^2, `mass`: sum a_u m_u, and `carrying`:
    sum (sum_i c_ui)^2 / sum_i c_ui^2, the interactions that carry the confidences.
    """

    users: float
    pairs: float
    squares: float
    mass: float
    carrying: float

    @classmethod
    def of(
        cls,
        loss: Loss,
        length: NDArray[Any],
        mass: Vector,
        squares: Vector,
        counts: Vector | None = None,
    ) -> "DataSums":
        """Return the sums, given n_u, m_u and sum_i c_ui^2 of every user, and their counts."""
        counts = np.ones(len(mass)) if counts is None else counts
        length = length.astype(np.float64)
        some = squares > 0
        carrying = np.where(some, mass**2 / np.where(some, squares, 1), 0)
        terms = np.ones(len(mass)), length, length**2, loss.pair_weight(mass) * mass, carrying
        return cls(*(float(counts @ each) for each in terms))

    def unobserved_weight(self, num_items: float) -> float:
        """Return b = 15 evenness mean(a_u m_u) / |V|."""
        return UNOBSERVED * self.evenness * (self.mass / self.users) / num_items

    @property
    def evenness(self) -> float:
        """sum_u (sum_i c_ui)^2 / sum_i c_ui^2 / sum_u n_u: 1 if confidences are equal.

        That is the share of the interactions that carry the confidences. Where a few of each
        user's have most of them, the others would count less than unobserved pairs.
        """
        return self.carrying / self.pairs

    @property
    def regularization(self) -> float:
        """Return lambda = 8 / (N |U|^(1/3)), but from 0.005 to 0.02; N = sum_u n_u^2 / sum_u n_u.

        n_u is the number of the user's interactions, and N its mean over interactions.
        """
        typical = self.squares / self.pairs
        return float(np.clip(SCARCITY / (typical * self.users ** (1 / 3)), *REGULARIZATION))


def data_sums(problem: Problem) -> DataSums:
    """Return the sums over a problem's users."""
    users = problem.interactions.users
    length, mass = np.diff(users.indptr), problem.user_mass
    squares = mass  # where all confidences are 1
    if users.weights is not None:
        squared: Any = np.square(users.weights, dtype=np.float64)  # beyond float32, if large
        squares = replace(users, weights=squared).row_mass()
    return DataSums.of(problem.loss, length, mass, squares, problem.counts)


def resolve(
    model: "ALSModel", interactions: "Interactions", user_count: Vector | None
) -> dict[str, float]:
    """Return the values of the "auto" options that depend on the data alone."""
    names = auto_options(model)
    if not names:
        return {}
    some = model.settled(dict.fromkeys(names, 1.0))  # neither matters here
    loss = some.make_loss()
    problem = Problem(interactions, loss, some.make_ridge(), tail=1.0, user_count=user_count)
    return scaled_options(names, data_sums(problem), problem.num_items)


def scaled_options(names: list[str], sums: DataSums, num_items: float) -> dict[str, float]:
    """Return the values of options by name, given sums over the data."""
    found = {
        "regularization": lambda: sums.regularization,
        "unobserved_weight": lambda: sums.unobserved_weight(num_items),
    }
    return {name: found[name]() for name in names}


def auto_options(model: "ALSModel") -> list[str]:
    """Return which options are to be scaled to the data."""
    names = ("regularization", "unobserved_weight")
    return [name for name in names if getattr(model, name) == AUTO]
