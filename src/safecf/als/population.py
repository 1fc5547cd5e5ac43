"""Losses of users, and the sums over them that the quantile step asks for."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from safecf.als.capabilities import PerRow
from safecf.als.kernels import Floats, Kernel
from safecf.caching import cached_property
from safecf.measures.tails import tail_mean, value_at_risk


class Totals(NamedTuple):
    """Sums over the losses that do not depend on xi: N, sum_u loss_u, and their range."""

    size: float
    loss: float
    low: float
    high: float

    def merge(self, other: "Totals") -> "Totals":
        """Return the totals of two parts of the users together."""
        size, loss = self.size + other.size, self.loss + other.loss
        return Totals(size, loss, min(self.low, other.low), max(self.high, other.high))


class Sums(NamedTuple):
    """Sums over users at one xi, with t_u = (loss_u - xi) / h; each user counts count_u times.

    `weight`: sum K(t_u), `density`: sum k(t_u), `check`: sum (rho_{1-tail} * k_h)(loss_u - xi),
    `distance`: sum |loss_u - xi|.
    """

    weight: float
    density: float
    check: float
    distance: float

    def merge(self, other: "Sums") -> "Sums":
        """Return the sums over two parts of the users together."""
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Tail(NamedTuple):
    """The VaR and the CVaR of losses, at some tail."""

    value_at_risk: float
    mean: float


class Smoothing(NamedTuple):
    """Which tail, smoothed by which kernel, how much."""

    tail: float
    kernel: Kernel
    bandwidth: float


class LossSums(Protocol):
    """What the quantile step does to losses, where they are: in NumPy, or where a backend works."""

    def vector(self, values: Any) -> PerRow:
        """Return numbers, one per user, as float64 where the losses are."""
        ...

    def totals(self, losses: PerRow, counts: PerRow | None) -> Totals:
        """Return the totals of the losses."""
        ...

    def sums(self, losses: PerRow, counts: PerRow | None, smoothing: Smoothing, xi: float) -> Sums:
        """Return the sums at xi."""
        ...

    def weights(self, losses: PerRow, smoothing: Smoothing, xi: float) -> PerRow:
        """w_u = 1 - K((xi - loss_u) / h) = K((loss_u - xi) / h), which keeps small ones exact."""
        ...

    def tail(self, losses: PerRow, counts: PerRow | None, tail: float) -> Tail:
        """Return the ceil(tail N)-th largest loss, and the mean of the largest tail N losses."""
        ...

    def group_sums(self, group: NDArray[np.intp], values: PerRow | None, groups: int) -> PerRow:
        """Return sum_{u in g} v_u of every group, v_u = 1 if there are no values."""
        ...


class NumpySums:
    """The passes as their formulas."""

    def vector(self, values: Any) -> Floats:
        """Return an array."""
        return np.asarray(values, dtype=np.float64)

    def totals(self, losses: Floats, counts: Floats | None) -> Totals:
        """N = sum_u count_u, sum_u count_u loss_u, min and max."""
        size = float(losses.size if counts is None else np.sum(counts))
        loss = float(np.sum(losses if counts is None else counts * losses))
        return Totals(size, loss, float(np.min(losses)), float(np.max(losses)))

    def sums(self, losses: Floats, counts: Floats | None, smoothing: Smoothing, xi: float) -> Sums:
        """Sum K, k, the smoothed check function and |loss_u - xi|."""
        tail, kernel, bandwidth = smoothing
        terms = (
            kernel.cdf((losses - xi) / bandwidth),
            kernel.density((xi - losses) / bandwidth),
            kernel.smoothed_check(losses - xi, bandwidth, 1 - tail),
            np.abs(losses - xi),
        )
        return Sums(*(float(np.sum(each if counts is None else counts * each)) for each in terms))

    def weights(self, losses: Floats, smoothing: Smoothing, xi: float) -> Floats:
        """K((loss_u - xi) / h)."""
        return smoothing.kernel.cdf((losses - xi) / smoothing.bandwidth)

    def tail(self, losses: Floats, counts: Floats | None, tail: float) -> Tail:
        """Minus the quantile of the scores -loss_u, and minus the mean of the lowest ones."""
        scores = -losses
        return Tail(-value_at_risk(scores, tail, counts), -tail_mean(scores, tail, counts))

    def group_sums(self, group: NDArray[np.intp], values: Floats | None, groups: int) -> Floats:
        """Count, with values."""
        return np.bincount(group, values, groups).astype(np.float64)


NUMPY = NumpySums()


@dataclass(frozen=True, eq=False)
class Population:
    """The losses of users: a frequency-weighted sample, where user u counts count_u > 0 times.

    Without `counts` everybody counts once; counts need not be whole. `passes` implements the sums.
    """

    losses: PerRow
    counts: PerRow | None = None
    passes: LossSums = NUMPY
    _sums: dict[tuple[Smoothing, float], Sums] = field(default_factory=dict, init=False, repr=False)
    _tails: dict[float, Tail] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "losses", self.passes.vector(self.losses))

    @cached_property
    def totals(self) -> Totals:
        """N, the sum of the losses, and their range."""
        return self.passes.totals(self.losses, self.counts)

    @property
    def size(self) -> float:
        """N = sum_u count_u."""
        return self.totals.size

    @property
    def mean_loss(self) -> float:
        """1/N sum_u count_u loss_u."""
        return self.totals.loss / self.totals.size

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the losses."""
        return math.sqrt(self.mean((self.losses - self.mean_loss) ** 2))

    def sums(self, smoothing: Smoothing, xi: float) -> Sums:
        """Return the sums at xi; an epoch's objective and the next quantile step share a pass."""
        key = (smoothing, xi)
        if key not in self._sums:
            self._sums[key] = self.passes.sums(self.losses, self.counts, smoothing, xi)
        return self._sums[key]

    def counted(self, values: PerRow) -> PerRow:
        """count_u v_u."""
        return values if self.counts is None else self.counts * values

    def sum(self, values: PerRow) -> float:
        """sum_u count_u v_u."""
        return float(self.counted(values).sum())

    def mean(self, values: PerRow) -> float:
        """1/N sum_u count_u v_u."""
        return self.sum(values) / self.size

    def draw(self, users: int, rng: np.random.Generator) -> "Population":
        """Return this number of users, drawn without replacement, with their counts."""
        drawn = rng.choice(len(self.losses), users, replace=False, shuffle=False)
        counts = None if self.counts is None else self.counts[drawn]
        return Population(self.losses[drawn], counts, self.passes)

    def value_at_risk(self, tail: float) -> float:
        """Return the exact (1 - tail) quantile of the losses: the ceil(tail N)-th largest one."""
        return self._tail(tail).value_at_risk

    def tail_mean(self, tail: float) -> float:
        """Return the CVaR, the mean of the worst tail N losses; tail = 1 is the mean."""
        return self._tail(tail).mean

    def _tail(self, tail: float) -> Tail:
        if tail not in self._tails:
            self._tails[tail] = self.passes.tail(self.losses, self.counts, tail)
        return self._tails[tail]
