"""Group CVaR: the worst-off groups of users in the place of the worst-off users."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from safecf.als.kernels import Floats
from safecf.als.quantile import Population
from safecf.als.risk import SmoothedCVaR


@dataclass(frozen=True, eq=False)
class GroupCVaR:
    """The mean loss of the worst-off share `tail` of the groups, each of which counts the same.

        L_g = 1/N_g sum_{u in g} count_u loss_u ,   N_g = sum_{u in g} count_u
        total = N/G total_groups(L) = tail N Psi(L) ,   w_u = N z_g / (G N_g) ,

    with the weights z_g that `risk` gives to the G groups. The mean of w_u over the N users is
    the mean of z_g over the groups, the tail. `names` are the groups, and `group[u]` is the place
    among them of the population's user u.
    """

    risk: SmoothedCVaR
    names: NDArray[Any]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, risk: SmoothedCVaR, labels: NDArray[Any]) -> Self:
        """Return the risk of the users that have these labels."""
        names, group = np.unique(labels, return_inverse=True)
        return cls(risk, names, group)

    @property
    def tail(self) -> float:
        """The share of groups that is protected."""
        return self.risk.tail

    def ranked(self, population: Population) -> Population:
        """L_g, with every group counted once."""
        losses = population.counted(population.losses)
        return Population(np.bincount(self.group, losses) / self._sizes(population))

    def start(self, population: Population) -> float:
        """Return xi = 1/G sum_g L_g."""
        return self.risk.start(self.ranked(population))

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return a better xi for the groups; sub-samples are drawn among them."""
        return self.risk.quantile(self.ranked(population), xi, rng)

    def weights(self, population: Population, xi: float) -> Floats:
        """w_u = N z_g / (G N_g): above 1 where a group in the tail is smaller than most."""
        inside = self.risk.weights(self.ranked(population), xi)
        return np.asarray((inside * self._shares(population))[self.group])

    def total(self, population: Population, xi: float) -> float:
        """Return N/G times the total of the groups."""
        return self.risk.total(self.ranked(population), xi) * (population.size / len(self.names))

    def group_weights(self, weights: Population) -> dict[str | int, float]:
        """Return z_g = w_u G N_g / N by name, given w_u in the place of the losses."""
        inside = self.ranked(weights).losses / self._shares(weights)
        return dict(zip(self.names.tolist(), inside.tolist(), strict=True))

    def _sizes(self, population: Population) -> Floats:
        """N_g."""
        return np.bincount(self.group, population.counts).astype(np.float64)

    def _shares(self, population: Population) -> Floats:
        """N / (G N_g)."""
        return population.size / (len(self.names) * self._sizes(population))
