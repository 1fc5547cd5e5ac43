"""What a backend does: the verbs that sweeps, fold-ins and searches are written in.

A backend gets interactions and factors once (`place_matrix`, `place`) and keeps them where it
likes: its matrices, factors, Gramians, fixed sides and row reports are opaque to everybody else.
Vectors with a number per row (weights, losses, ridges) are brought to it as well (`place_vector`)
and stay there in float64: they can be added, multiplied, compared, indexed and summed as NumPy's
arrays can, and what is more is among the `LossSums`. A verb also takes them from NumPy. `fetch`
brings factors and vectors back, when a model is published or a checkpoint is written.

Each protocol is a capability. A sweep or a model names the one that it needs, and a backend that
lacks it is refused before any work; see `safecf.backends.make_backend`.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from safecf.als.loss import Vector

if TYPE_CHECKING:
    from safecf.als.optimizers import Moments
    from safecf.als.population import LossSums
    from safecf.als.rows import Rows
    from safecf.als.solvers import Gradient, RowSolver
    from safecf.data.matrices.csr import Csr

Matrix = Any  # interactions by row
Factors = Any  # one row per user or item; an array with a `shape`
Gram = Any  # F' diag(weight) F; Gramians of parts add up, and can be scaled
Fixed = Any  # the fixed side of a half-step: its factors and G
PairScores = Any  # x_r.y_j for every interaction
Positions = Any  # where the items' interactions stand among those of the users
PerRow = Any  # one number per row, in float64: a NumPy array, or the backend's own

Ids = NDArray[np.int32]
Scores = NDArray[np.float32]


class RowReport(Protocol):
    """What a half-step did to its rows, as sums; those of parts of the rows add up."""

    def change(self) -> float:
        """sum_r |x_new - x_old|^2."""
        ...

    def penalty(self, ridge: PerRow) -> float:
        """sum_r ridge_r |x_new|^2."""
        ...

    def largest(self) -> float:
        """max_r |x_new|^2; of several parts, the largest one counts."""
        ...

    def below(self, bound: float, count: PerRow) -> float:
        """sum_r count_r 1{|x_new|^2 <= bound}."""
        ...

    def __add__(self, other: Self) -> Self:
        """Join the reports on two blocks of coordinates of the same rows."""
        ...


@dataclass(frozen=True)
class HostReport:
    """A report by row, |x_new - x_old|^2 and |x_new|^2, for backends that keep it in NumPy.

    Sums are not left to BLAS, whose threads go on spinning beside the next kernel.
    """

    changes: Vector
    norms: Vector

    def change(self) -> float:
        """sum_r |x_new - x_old|^2."""
        return float(self.changes.sum())

    def penalty(self, ridge: Vector) -> float:
        """sum_r ridge_r |x_new|^2."""
        return float(np.sum(ridge * self.norms))

    def largest(self) -> float:
        """max_r |x_new|^2."""
        return float(self.norms.max(initial=0))

    def below(self, bound: float, count: Vector) -> float:
        """sum_r count_r 1{|x_new|^2 <= bound}."""
        return float(np.sum(count * (self.norms <= bound)))

    def __add__(self, other: "HostReport") -> "HostReport":
        return HostReport(self.changes + other.changes, self.norms + other.norms)


@runtime_checkable
class HalfSteps(Protocol):
    """Training by half-steps. All verbs give the same bits when they are run again.

    It is made with the number of threads, 0 for all cores, which it may ignore. A half-step may be
    about a part of the rows: `Rows` says which. Solutions depend on how the rows are cut by
    rounding at most, Gramians and reports of parts add up, and errors name the row of the whole.
    A Gramian can be added, multiplied by a number, cut by columns, placed and fetched.
    """

    name: str
    row_solvers: Collection[str]  # the names of the `RowSolver`s that it has
    same_bits: bool  # whether a row has the same bits however the rows are cut, and a query, too

    def guarded(self) -> AbstractContextManager[None]:
        """Return a context for all that uses the backend, arithmetic on its vectors included.

        Memory that runs out inside of it is a MemoryError that says what to try.
        """

    def host_bytes(self, users: int, items: int, interactions: int, factors: int) -> int:
        """Return how much of the host's memory training takes beyond the interactions."""

    def place_matrix(self, matrix: "Csr") -> Matrix:
        """Bring interactions to where the backend works."""

    def place(self, factors: NDArray[Any]) -> Factors:
        """Bring factors, which may be read-only, to where the backend works, in its own type."""

    def place_vector(self, values: Vector) -> PerRow:
        """Bring a vector with a number per row to where the backend works."""

    def fetch(self, factors: Factors | PerRow) -> NDArray[Any]:
        """Return factors or a vector as a NumPy array, without a copy if they are one."""

    def copy(self, factors: Factors) -> Factors:
        """Return a copy in the same place."""

    def zeros(self, rows: int, columns: int) -> Factors:
        """Return factors of zero."""

    def gram(
        self,
        factors: Factors,
        weight: PerRow | None = None,
        block: slice | None = None,
        solver: "RowSolver | None" = None,
    ) -> Gram:
        """Return F' diag(weight) F, or only its columns `block`.

        It is as precise as the tolerance of a solver asks for, if one is given.
        """

    def rotate(self, factors: Factors, others: Factors, gram: Gram, solver: "RowSolver") -> PerRow:
        """Rotate both sides, in place, into the eigenbasis of G; return its eigenvalues.

        No score x.y changes, as precisely as the solver's tolerance asks for, and G is diagonal
        from here on.
        """

    def fix_rotated(self, factors: Factors, spectrum: PerRow, solver: "RowSolver") -> Fixed:
        """Prepare the fixed side after `rotate`, as precise as the solver's tolerance asks for."""

    def fix(self, factors: Factors, gram: Gram) -> Fixed:
        """Prepare the fixed side of a half-step without rotating it."""

    def solve_rows(
        self, rows: "Rows", fixed: Fixed, factors: Factors, solver: "RowSolver"
    ) -> RowReport:
        """Solve every row of `rows` and write the solutions into `factors`, in place.

        What `factors` holds is the starting point of the iterative solvers. A row whose
        right-hand side vanishes becomes zero. Raises `SolveError` with the first row that
        cannot be solved.
        """

    def losses(
        self,
        matrix: Matrix,
        pair_weight: PerRow,
        factors: Factors,
        fixed: Fixed,
        ridge: PerRow | None = None,
    ) -> PerRow:
        """Return a_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r + ridge_r/2 |x_r|^2."""

    @property
    def loss_sums(self) -> "LossSums":
        """How the quantile step sums over losses."""


@runtime_checkable
class Blocks(HalfSteps, Protocol):
    """Updates of blocks of coordinates, given the scores of the observed pairs; see `Subspace`."""

    def positions(self, matrix: Matrix) -> Positions:
        """Return the place in the matrix of every entry of its transpose."""

    def scores(self, matrix: Matrix, factors: Factors, others: Factors) -> PairScores:
        """Return x_r.y_j for every entry (r, j) of the matrix, in its order."""

    def scored_losses(
        self,
        matrix: Matrix,
        pair_weight: PerRow,
        scores: PairScores,
        factors: Factors,
        gram: Gram,
        ridge: PerRow | None = None,
    ) -> PerRow:
        """Return the losses, given the scores x_r.y_j of the matrix's entries, and G."""

    def update_block(
        self,
        rows: "Rows",
        block: slice,
        others: Factors,
        gram: Gram,
        factors: Factors,
        scores: PairScores,
        positions: Positions | None = None,
    ) -> RowReport:
        """Solve every row for the coordinates `block`, given the rest; see `Subspace`.

        `gram` holds the columns `block` of G. Both `factors` and `scores`, those of the matrix's
        entries, are updated in place; entry e has its score at positions[e], or at e. The report
        is about the block alone, so that the sum over the blocks is about the rows. Raises
        `SolveError` with the first row that cannot be solved.
        """


@runtime_checkable
class Gradients(HalfSteps, Protocol):
    """Gradient steps; see `Gradient`."""

    def descend(
        self,
        rows: "Rows",
        fixed: Fixed,
        factors: Factors,
        moments: "Moments | None",
        solver: "Gradient",
        epoch: int,
    ) -> tuple[Factors, "Moments | None", RowReport]:
        """Return new factors, the optimizer's new moments, and a report; the old ones stay.

        x - step_size * direction, where the optimizer makes the direction from A_r x_r - b_r.
        """


class Index(Protocol):
    """Factors, ready to be searched."""

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        exclude: "Csr | None" = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the k rows with the best scores query.y for every query, best first.

        Ties rank by index. `exclude` lists rows to leave out per query, `exclude_all` for every
        query. Where fewer than k are left, ids are padded with -1 and scores with -FLT_MAX. A
        score of NaN or minus infinity is never returned. If the backend has `same_bits`, a query
        has the same scores alone and among others.
        """

    def ranks(
        self,
        queries: NDArray[np.float32],
        targets: "Csr",
        exclude: "Csr | None" = None,
        exclude_all: Ids | None = None,
    ) -> Ids:
        """Return the rank of every entry of `targets`, which has one row per query.

        It is the entry's place, from 1 on, in a search of all rows; 0 if no search returns it.
        """


@runtime_checkable
class Search(Protocol):
    """Search by dot product."""

    name: str

    def index(self, factors: NDArray[np.float32]) -> Index:
        """Prepare factors for searches; the index is good until they change."""


# What a capability is called in messages.
CAPABILITIES: dict[type, str] = {
    HalfSteps: "half-steps",
    Blocks: "updates of coordinate blocks",
    Gradients: "gradient steps",
    Search: "search",
}
