"""Search by dot product in PyTorch: scores of some queries at a time, and a selection from them."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.als.capabilities import Ids
from safecf.backends.torch.budget import Budget
from safecf.data.matrices.csr import Csr

NONE_LEFT = -float(np.finfo(np.float32).max)
EPSILON = float(np.finfo(np.float32).eps)
TINY = 1e-30  # more than what underflows
SPARE = 32  # candidates beyond k


class TorchIndex:
    """Factors on a device, to be searched again and again.

    A product of matrices finds the candidates. Their scores are then computed one by one, in an
    order of their own: a query has the same bits alone and among others, and equal rows tie.
    """

    def __init__(self, factors: Tensor, budget: Budget) -> None:
        self._factors, self._budget = factors, budget
        self._lengths = _lengths(factors)

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the k best rows per query; see `Index`."""
        ids = np.full((len(queries), k), -1, dtype=np.int32)
        best = np.full((len(queries), k), NONE_LEFT, dtype=np.float32)
        width = min(k, len(self._factors))

        def find(part: slice, asked: Tensor, scores: Tensor) -> None:
            values, found = self._best(asked, scores, width)
            nothing = values == -torch.inf
            ids[part, :width] = found.masked_fill(nothing, -1).to(torch.int32).cpu().numpy()
            best[part, :width] = values.masked_fill(nothing, NONE_LEFT).cpu().numpy()

        if width:
            self._score(queries, exclude, exclude_all, find)
        return ids, best

    def _best(self, asked: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best of every row, best first; those that tie by index."""
        more = min(k + SPARE, scores.shape[1])
        above = (scores + self._doubt(asked)).masked_fill_(scores == -torch.inf, -torch.inf)
        bounds, ids = above.topk(more, dim=1)
        values, ids = self._ordered(asked, bounds, ids)
        values, ids = values[:, :k], ids[:, :k]
        if more < scores.shape[1]:
            # what is left out must be worse than the k-th beyond doubt
            unsure = ~(bounds[:, -1] < values[:, -1])
            unsure &= bounds[:, -1] != -torch.inf
            every = torch.arange(scores.shape[1], device=scores.device)[None]
            for (rows,) in _cut(
                self._budget.numbers // (8 * scores.shape[1]), unsure.nonzero()[:, 0]
            ):
                all_rows = every.expand(len(rows), -1)
                whole, order = self._ordered(asked[rows], scores[rows], all_rows)
                values[rows], ids[rows] = whole[:, :k], order[:, :k]
        return values, ids

    def _ordered(self, asked: Tensor, rough: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of candidates, best first, and which they are; by index if they tie."""
        ids, order = ids.sort(dim=1)
        rows = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
        values = self._exact(asked, rows.flatten(), ids.flatten()).view(ids.shape)
        values = values.masked_fill(rough.gather(1, order) == -torch.inf, -torch.inf)
        values, order = values.sort(dim=1, descending=True, stable=True)
        return values, ids.gather(1, order)

    def ranks(
        self,
        queries: NDArray[np.float32],
        targets: Csr,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> Ids:
        """Return 1 + the number of rows before each target, counted from scores; see `Index`."""
        ranks = np.zeros(targets.nnz, dtype=np.int32)

        def find(part: slice, asked: Tensor, scores: Tensor) -> None:
            rows, columns, entries = _entries(targets, part, scores.device)
            size = self._budget.numbers // max(4 * len(self._factors), 1)
            places = [self._places(asked, scores, *some) for some in _cut(size, rows, columns)]
            ranks[entries] = torch.cat(places).to(torch.int32).cpu().numpy()

        self._score(queries, exclude, exclude_all, find)
        return ranks

    def _places(self, asked: Tensor, scores: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the places of targets: clear cases by the rough scores, others one by one."""
        own = self._exact(asked, rows, columns)
        rough, doubt = scores[rows], self._doubt(asked[rows])
        ahead = rough - own.clamp(NONE_LEFT, -NONE_LEFT)[:, None]
        before = (ahead > doubt).sum(dim=1)
        target, other = (~(ahead.abs() > doubt) & (rough > -torch.inf)).nonzero(as_tuple=True)
        value, mine = self._exact(asked, rows[target], other), own[target]
        wins = (value > mine) | ((value == mine) & (other < columns[target]))
        before += torch.bincount(target[wins], minlength=len(rows))
        there = (scores[rows, columns] > -torch.inf) & (own > -torch.inf)
        return torch.where(there, 1 + before, 0)

    def _exact(self, asked: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the scores of pairs; -inf where one is no number."""
        size = self._budget.numbers // self._factors.shape[1]
        found = [
            dot_products(asked[some], self._factors[others])
            for some, others in _cut(size, rows, columns)
        ]
        return torch.cat(found).nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)

    def _doubt(self, asked: Tensor) -> Tensor:
        """Return how far each score may be off by rounding, however it is added up.

        (d + 2) eps |x| |y|, with some to spare; infinite where a sum may overflow.
        """
        product = 2 * _lengths(asked)[:, None] * self._lengths
        found = product.mul_(2 * (asked.shape[1] + 2) * EPSILON).add_(TINY)
        return found.nan_to_num_(nan=torch.inf, posinf=torch.inf)

    def _score(
        self,
        queries: NDArray[np.float32],
        exclude: Csr | None,
        exclude_all: Ids | None,
        find: Callable[[slice, Tensor, Tensor], None],
    ) -> None:
        """Call `find` with parts of the queries, and their scores; -inf where a row is left out."""
        factors = self._factors
        everywhere = None
        if exclude_all is not None:
            ids = np.array(exclude_all, dtype=np.int64)
            everywhere = self._budget.run(lambda: torch.as_tensor(ids).to(factors.device))

        def score(part: slice) -> None:
            asked = torch.as_tensor(np.array(queries[part], dtype=np.float32)).to(factors.device)
            scores = asked @ factors.T
            scores.nan_to_num_(nan=NONE_LEFT, posinf=-NONE_LEFT, neginf=NONE_LEFT)
            if exclude is not None:
                rows, columns, _ = _entries(exclude, part, factors.device)
                scores[rows, columns] = -torch.inf
            if everywhere is not None:
                scores[:, everywhere] = -torch.inf
            find(part, asked, scores)

        # the ids of candidates have 64 bits
        self._budget.each(range(len(queries) + 1), 2 * len(factors), score)


def _entries(matrix: Csr, rows: slice, device: torch.device) -> tuple[Tensor, Tensor, slice]:
    """Return the rows, from 0 on, and columns of the entries of some rows, and which these are."""
    indptr = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    numbers = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    columns = matrix.indices[entries].astype(np.int64)
    return torch.as_tensor(numbers).to(device), torch.as_tensor(columns).to(device), entries


def _lengths(rows: Tensor) -> Tensor:
    """|x| of every row; infinite if that is no number. Squares of tiny numbers would vanish."""
    found: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).to(rows.dtype)
    return found.nan_to_num(nan=torch.inf, posinf=torch.inf)


def _cut(size: int, *vectors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield parts of vectors of one length, at most `size` long; one empty part if they are."""
    size = max(1, size)
    for first in range(0, max(1, len(vectors[0])), size):
        yield tuple(each[first : first + size] for each in vectors)


def dot_products(left: Tensor, right: Tensor) -> Tensor:
    """x.y along the last dimension, always added up in the same order: halves onto halves."""
    terms = left * right
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        sums = terms[..., :half] + terms[..., half : 2 * half]
        terms = torch.cat([sums, terms[..., 2 * half :]], dim=-1)
    found: Tensor = terms[..., 0]
    return found
