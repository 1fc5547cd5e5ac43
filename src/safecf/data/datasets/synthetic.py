"""Synthetic interactions with popularity and activity like real data, and known tastes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.checks import check_integer, check_number
from safecf.errors import choose, shown

# Balls per item of an urn: enough for rare items to have one.
BALLS = 64
# Interactions that are drawn at a time, which bounds the memory.
BLOCK = 2**20
# Rounds after which users who still lack items draw from all items with equal probability.
MAX_ROUNDS = 12


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name}={shown(value)}; it has to be {wanted}")


@dataclass(frozen=True)
class Recipe:
    """The parameters of the generator; every user has one taste, and tastes differ in size.

    1. Item i has popularity p_i = (rank_i + shift |V|)^-exponent (Zipf-Mandelbrot).
    2. Taste g has a share ~ (g + 1)^-skew of the users, a share ~ (g + 1)^(-skew / 2) of the items
       and `facets` facets, among which its items are divided. A share `overlap` of the items
       belongs to a facet of a second taste as well.
    3. A user's number of interactions is log-normal with `spread`, at least `shortest`; the
       probabilities of the facets of their taste are Dirichlet(`variety`).
    4. Each interaction draws an item by popularity: from all items with probability `hits`, from a
       facet of a random taste with probability `roaming`, else from a facet of the user's own
       taste. All items of a user are different.
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
        check_integer("seed", self.seed, 0, default=0)
        for name in ("skew", "exponent", "spread"):
            _check(self._number(name) >= 0, name, getattr(self, name), "at least 0")
        for name in ("shift", "variety"):
            _check(self._number(name) > 0, name, getattr(self, name), "above 0")
        for name in ("overlap", "hits", "roaming"):
            _check(0 <= self._number(name) <= 1, name, getattr(self, name), "between 0 and 1")
        _check(self.hits + self.roaming <= 1, "roaming", self.roaming, "at most 1 - hits")
        if self.longest < self.shortest:
            raise ValueError(
                f"items={self.items}: a user likes at most half of them, but at least "
                f"{self.shortest}; give {2 * self.shortest:,} items or more, or lower shortest"
            )
        fewest, most = self.users * self.shortest, self.users * self.longest
        if not fewest <= self.interactions <= most:
            raise ValueError(
                f"interactions={self.interactions}, but {self.users:,} users with "
                f"{self.shortest} to {self.longest} of the {self.items:,} items each have "
                f"{fewest:,} to {most:,}; change interactions, users or items"
            )

    def _number(self, name: str) -> float:
        return check_number(name, getattr(self, name), default=getattr(Recipe, name))

    @property
    def longest(self) -> int:
        """The largest number of interactions of a user: half of the items."""
        return max(self.items // 2, 1)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The tastes' shares of the users, largest first."""
        weight = np.arange(1.0, self.tastes + 1) ** -self.skew
        return np.asarray(weight / weight.sum())


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Interactions, and the taste `group[u]` of every user u; taste 0 is the largest.

    Item i belongs to facet `home[i]`, which is one of taste home[i] // facets, and to facet
    `second[i]`, mostly the same.
    """

    matrix: csr_matrix
    group: NDArray[np.int64]
    recipe: Recipe
    home: NDArray[np.int64]
    second: NDArray[np.int64]


SHAPES: dict[str, Recipe] = {
    "demo": Recipe(6_000, 2_000, 400_000),
    "ml-20m-like": Recipe(136_677, 20_108, 9_540_000, exponent=1.5, shift=0.01),
    "msd-like": Recipe(571_355, 41_140, 33_600_000, exponent=1.0, shift=0.01, shortest=20),
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
    urns, home, second = _urns(recipe, rng)
    indptr = np.append(0, np.cumsum(lengths))
    indices = np.empty(recipe.interactions, dtype=np.int32)
    for first, last in _blocks(indptr):
        begin, end = indptr[first], indptr[last]
        indices[begin:end] = _draw_users(recipe, lengths[first:last], group[first:last], urns, rng)
    ones = np.ones(recipe.interactions, dtype=np.float32)
    matrix = csr_matrix((ones, indices, indptr), shape=(recipe.users, recipe.items), copy=False)
    return Synthetic(matrix, group, recipe, home, second)


def _lengths(recipe: Recipe, rng: np.random.Generator) -> NDArray[np.int64]:
    """n_u = clip(scale * a_u, shortest, longest), a_u log-normal; their sum is `interactions`.

    The scale is found by bisection. n_u is rounded down, and up for as many random users as the sum
    needs.
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
    """Urns of items: urn k is `balls[first[k]:first[k] + size[k]]`, each ball is an item."""

    balls: NDArray[np.int32]
    first: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def fill(cls, members: Iterable[NDArray[np.int64]], popularity: NDArray[np.float64]) -> Self:
        """Fill each urn with its members, in numbers proportional to their popularity."""
        balls = []
        for items in members:
            edges = np.cumsum(popularity[items])
            edges = np.rint(edges * (BALLS * items.size / edges[-1])).astype(np.int64)
            balls.append(np.repeat(items.astype(np.int32), np.diff(edges, prepend=0)))
        size = np.array([urn.size for urn in balls])
        return cls(np.concatenate(balls), np.cumsum(size) - size, size)

    def draw(self, urn: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw a ball from each of the urns, with replacement."""
        ball = (rng.random(urn.size) * self.size[urn]).astype(np.int64)
        return np.asarray(self.balls[self.first[urn] + ball])


def _urns(
    recipe: Recipe, rng: np.random.Generator
) -> tuple[_Urns, NDArray[np.int64], NDArray[np.int64]]:
    """Return one urn per facet of every taste, and a last one with all items.

    Also return the two facets of every item.
    """
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
    # facets without items draw from all items
    members = [urn if urn.size else everything for urn in members]
    return _Urns.fill([*members, everything], popularity), home, second


def _blocks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of users with about `BLOCK` interactions each."""
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
    """Draw items until user u has `lengths[u]` different ones; return them sorted by user."""
    mix = rng.dirichlet(np.full(recipe.facets, recipe.variety), lengths.size)
    edges = np.cumsum(mix, axis=1)[:, :-1]
    bits = recipe.items.bit_length()
    pairs = np.empty(0, dtype=np.int64)  # user * 2^bits + item, ascending
    first_pairs = np.arange(lengths.size + 1) << bits
    missing, rounds = lengths, 0
    while missing.any():
        users = np.repeat(np.arange(lengths.size), missing)
        if rounds < MAX_ROUNDS:
            items = _draw_items(recipe, users, group, edges, urns, rng)
        else:
            items = rng.integers(recipe.items, size=users.size, dtype=np.int32)
        drawn = np.sort(users << bits | items)
        # numpy's stable sort merges runs that are sorted already
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
    """Choose an urn for each of `users`, and draw an item from it."""
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
