"""Synthetic interactions that behave like real ones, with tastes that are known."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.errors import choose

# An urn has 64 balls per item, so that rare items are in it too.
BALLS = 64
# Interactions that are drawn at a time, which bounds the memory.
BLOCK = 2**20
# Rounds after which a user, who has liked nearly all there is to like, likes anything.
PATIENCE = 12


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}; it has to be {wanted}")


@dataclass(frozen=True)
class Recipe:
    """How interactions come about; every user has one taste, and tastes differ in size.

    1. Item i has popularity p_i = (rank_i + shift |V|)^-exponent (Zipf-Mandelbrot).
    2. Taste g has a share ~ (g + 1)^-skew of the users, a share ~ (g + 1)^(-skew / 2) of the items
       and `facets` facets, among which its items are spread. A share `overlap` of the items
       belongs to a facet of another taste as well.
    3. A user's number of interactions is log-normal with `spread`, at least `shortest`; how much
       they like each facet of their taste is Dirichlet(`variety`).
    4. Each interaction is with a hit (any item, by popularity) with probability `hits`, with an
       item of anybody's taste with probability `roaming`, else with an item of a facet of the
       user's own taste, by popularity. Nobody likes an item twice.
    """

    users: int
    items: int
    interactions: int
    tastes: int = 40
    facets: int = 3
    skew: float = 1.0
    overlap: float = 0.3
    hits: float = 0.2
    roaming: float = 0.1
    variety: float = 0.5
    exponent: float = 2.0
    shift: float = 0.08
    spread: float = 1.0
    shortest: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("users", "items", "interactions", "tastes", "facets", "shortest"):
            value: Any = getattr(self, name)
            whole = isinstance(value, int | np.integer)
            _check(whole and bool(value >= 1), name, value, "a whole number >= 1")
        for name in ("skew", "exponent", "spread", "seed"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in ("shift", "variety"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for name in ("overlap", "hits", "roaming"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "between 0 and 1")
        _check(self.hits + self.roaming <= 1, "roaming", self.roaming, "at most 1 - hits")
        if self.longest < self.shortest:
            raise ValueError(
                f"items is {self.items:,}: a user likes at most half of them, but at least "
                f"{self.shortest}; give {2 * self.shortest:,} items or more, or lower shortest"
            )
        fewest, most = self.users * self.shortest, self.users * self.longest
        if not fewest <= self.interactions <= most:
            raise ValueError(
                f"interactions is {self.interactions:,}, but {self.users:,} users with "
                f"{self.shortest} to {self.longest} of the {self.items:,} items each have "
                f"{fewest:,} to {most:,}; change interactions, users or items"
            )

    @property
    def longest(self) -> int:
        """The most interactions of a user, half of the items."""
        return max(self.items // 2, 1)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The tastes' shares of the users, largest first."""
        weight = np.arange(1.0, self.tastes + 1) ** -self.skew
        return np.asarray(weight / weight.sum())


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Interactions with the taste behind them: user u has the taste `group[u]`, 0 the largest."""

    matrix: csr_matrix
    group: NDArray[np.int64]
    recipe: Recipe


SHAPES: dict[str, Recipe] = {
    "demo": Recipe(6_000, 2_000, 400_000),
    "ml-20m-like": Recipe(136_677, 20_108, 9_540_000, exponent=1.5, shift=0.01),
    "msd-like": Recipe(571_355, 41_140, 33_600_000, exponent=1.0, shift=0.01, shortest=20),
}


# Rounded from the best of 64 random settings per model, by recall@20 of the worst-off 30 % of the
# validation users of "demo" with the seeds 100 to 102. There are fewer factors than tastes, as with
# any large catalogue, so that a model has to choose whom to serve.
DEMO_SETTINGS: dict[str, dict[str, Any]] = {
    "IALS": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.3,
        "regularization": 0.007,
    },
    "ERMMF": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.003,
        "regularization": 0.01,
    },
    "SAFER2": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.004,
        "regularization": 0.007,
        "bandwidth": 0.15,
        "tail": 0.3,
    },
}


def synthetic(
    users: int | str,
    items: int | None = None,
    interactions: int | None = None,
    **options: Any,
) -> Synthetic:
    """Draw exactly `interactions` different pairs of `users` and `items`.

    The options are those of `Recipe`. Instead of the three numbers, the name of one of `SHAPES`
    may be given. The same recipe, its `seed` included, gives the same matrix.

    >>> synthetic("ml-20m-like", seed=1).matrix.shape
    (136677, 20108)
    >>> synthetic(2000, 500, 60_000, tastes=4).matrix.nnz
    60000
    """
    known = {field.name for field in fields(Recipe)} - {"users", "items", "interactions"}
    for name in options:
        choose("option", name, dict.fromkeys(sorted(known)))
    if isinstance(users, str):
        sizes = {"items": items, "interactions": interactions}
        given = {name: size for name, size in sizes.items() if size is not None}
        return _draw(replace(choose("shape", users, SHAPES), **given, **options))
    if items is None or interactions is None:
        raise TypeError(
            f"synthetic({users}) needs items and interactions as well; give three numbers, or "
            f"the name of a shape: {', '.join(SHAPES)}"
        )
    return _draw(Recipe(users, items, interactions, **options))


def _draw(recipe: Recipe) -> Synthetic:
    rng = np.random.default_rng(recipe.seed)
    group = rng.choice(recipe.tastes, recipe.users, p=recipe.shares)
    lengths = _lengths(recipe, rng)
    urns = _urns(recipe, rng)
    indptr = np.append(0, np.cumsum(lengths))
    indices = np.empty(recipe.interactions, dtype=np.int32)
    for first, last in _blocks(indptr):
        begin, end = indptr[first], indptr[last]
        indices[begin:end] = _draw_users(recipe, lengths[first:last], group[first:last], urns, rng)
    ones = np.ones(recipe.interactions, dtype=np.float32)
    matrix = csr_matrix((ones, indices, indptr), shape=(recipe.users, recipe.items), copy=False)
    return Synthetic(matrix, group, recipe)


def _lengths(recipe: Recipe, rng: np.random.Generator) -> NDArray[np.int64]:
    """n_u = min(max(scale * a_u, shortest), longest), a_u log-normal, with the scale that it takes.

    Rounded down, and up again for as many users, drawn at random, as are needed for the sum.
    """
    activity = rng.lognormal(0.0, recipe.spread, recipe.users)
    low, high = 0.0, recipe.longest / activity.min()
    for _ in range(100):
        scale = (low + high) / 2
        reached = np.clip(scale * activity, recipe.shortest, recipe.longest).sum()
        low, high = (scale, high) if reached < recipe.interactions else (low, scale)
    lengths = np.clip(low * activity, recipe.shortest, recipe.longest).astype(np.int64)
    can_grow = np.flatnonzero(lengths < recipe.longest)
    lengths[rng.choice(can_grow, recipe.interactions - lengths.sum(), replace=False)] += 1
    return lengths


@dataclass(frozen=True, eq=False)
class _Urns:
    """Items to draw from: urn k is `balls[first[k]:first[k] + size[k]]`, every ball an item."""

    balls: NDArray[np.int32]
    first: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def fill(cls, members: Iterable[NDArray[np.int64]], popularity: NDArray[np.float64]) -> Self:
        """Give each member of an urn its share of the balls, by popularity."""
        balls = []
        for items in members:
            edges = np.cumsum(popularity[items])
            edges = np.rint(edges * (BALLS * items.size / edges[-1])).astype(np.int64)
            balls.append(np.repeat(items.astype(np.int32), np.diff(edges, prepend=0)))
        size = np.array([urn.size for urn in balls])
        return cls(np.concatenate(balls), np.cumsum(size) - size, size)

    def draw(self, urn: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw a ball from each of the urns, and put it back."""
        ball = (rng.random(urn.size) * self.size[urn]).astype(np.int64)
        return np.asarray(self.balls[self.first[urn] + ball])


def _urns(recipe: Recipe, rng: np.random.Generator) -> _Urns:
    """One urn per facet of every taste, and a last one with the hits."""
    items, facets = recipe.items, recipe.facets
    rank = rng.permutation(items) + 1.0
    popularity = np.asarray((rank + recipe.shift * items) ** -recipe.exponent, dtype=np.float64)
    of_items = np.sqrt(recipe.shares)
    home = rng.choice(recipe.tastes, items, p=of_items / of_items.sum())
    home = home * facets + rng.integers(facets, size=items)
    second = rng.choice(recipe.tastes, items, p=recipe.shares)
    second = second * facets + rng.integers(facets, size=items)
    second = np.where(rng.random(items) < recipe.overlap, second, home)
    everything = np.arange(items)
    members = [np.flatnonzero((home == k) | (second == k)) for k in range(recipe.tastes * facets)]
    # a facet that no item has come to is about hits
    members = [urn if urn.size else everything for urn in members]
    return _Urns.fill([*members, everything], popularity)


def _blocks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of users with about `BLOCK` interactions."""
    edges = np.searchsorted(indptr, np.arange(0, indptr[-1], BLOCK))
    edges = np.unique(np.append(edges, indptr.size - 1)).tolist()
    yield from pairwise(edges)


def _draw_users(
    recipe: Recipe,
    lengths: NDArray[np.int64],
    group: NDArray[np.int64],
    urns: _Urns,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw items until user u has `lengths[u]` different ones; ascending, user after user."""
    mix = rng.dirichlet(np.full(recipe.facets, recipe.variety), lengths.size)
    edges = np.cumsum(mix, axis=1)[:, :-1]
    bits = recipe.items.bit_length()
    pairs = np.empty(0, dtype=np.int64)  # user * 2^bits + item, ascending
    first_pairs = np.arange(lengths.size + 1) << bits
    missing, rounds = lengths, 0
    while missing.any():
        users = np.repeat(np.arange(lengths.size), missing)
        if rounds < PATIENCE:
            items = _draw_items(recipe, users, group, edges, urns, rng)
        else:
            items = rng.integers(recipe.items, size=users.size, dtype=np.int32)
        drawn = np.sort(users << bits | items)
        # of the stable sorts, numpy has one that merges what is sorted already
        pairs = np.sort(np.concatenate([pairs, drawn]), kind="stable")
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        missing = lengths - np.diff(np.searchsorted(pairs, first_pairs))
        rounds += 1
    return np.asarray(pairs & ((1 << bits) - 1))


def _draw_items(
    recipe: Recipe,
    users: NDArray[np.int64],
    group: NDArray[np.int64],
    edges: NDArray[np.float64],
    urns: _Urns,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Choose an urn for each of `users`, and a ball from it."""
    taste = group[users]
    kind = rng.random(users.size)
    roams = np.flatnonzero(kind < recipe.roaming)
    taste[roams] = rng.choice(recipe.tastes, roams.size, p=recipe.shares)
    where = rng.random(users.size)
    facet = np.zeros(users.size, dtype=np.int64)
    for edge in edges.T:
        facet += where > edge[users]
    urn = taste * recipe.facets + facet
    urn[kind >= 1 - recipe.hits] = recipe.tastes * recipe.facets
    return urns.draw(urn, rng)
