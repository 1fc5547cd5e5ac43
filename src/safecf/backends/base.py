"""The protocol of a backend: a few coarse verbs over the interactions and the factors."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import RowSolver
from safecf.data.matrices.matrix import Csr

Factors = NDArray[Any]
Ids = NDArray[np.int32]
Positions = NDArray[np.uint32]


class Solved(NamedTuple):
    """What a half-step reports per row: |x_new - x_old|^2 and |x_new|^2."""

    change: Vector
    norm: Vector


class Index(Protocol):
    """Factors to search."""

    def search(
        self,
        queries: Factors,
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the k best rows per query, best first, and their scores; see `Backend.topk`."""


class Backend(Protocol):
    """The verbs that the loop and the models are written in.

    `prepare` returns whatever the backend likes to know about the fixed side; only the same
    backend looks inside. All verbs give the same bits for every number of threads.
    """

    name: str
    dtype: np.dtype[Any]

    def gram(
        self, factors: Factors, weight: Vector | None = None, block: slice | None = None
    ) -> Factors:
        """Return F' diag(weight) F, or only its columns `block`."""

    def turn(self, factors: Factors, others: Factors, gram: Factors) -> Vector:
        """Rotate both sides, in place, into the eigenbasis of G; return its eigenvalues.

        No score x.y changes, and G is diagonal from here on.
        """

    def prepare_turned(self, factors: Factors, values: Vector, *, rough: bool = False) -> Any:
        """Get factors ready that `turn` has rotated, given what it returned.

        Rough ones may be off by 2^-8 of each, for the sake of speed.
        """

    def prepare(self, factors: Factors, gram: Factors) -> Any:
        """Get the fixed side of a half-step ready as it is: its factors and G."""

    def solve_rows(self, rows: Rows, fixed: Any, factors: Factors, solver: RowSolver) -> Solved:
        """Solve every row of `rows` and write the solutions into `factors`, in place.

        What `factors` holds is the starting point of the iterative solvers. A row whose
        right-hand side vanishes becomes zero. Raises `SolveError` with the first row that
        cannot be solved.
        """

    def gradients(self, rows: Rows, fixed: Any, factors: Factors) -> Factors:
        """Return A_r x_r - b_r, the slope of every row's objective; see `Rows`."""

    def losses(self, matrix: Csr, pair_weight: Vector, factors: Factors, fixed: Any) -> Vector:
        """Return a_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r for every row."""

    def scores(self, matrix: Csr, factors: Factors, others: Factors) -> Factors:
        """Return x_r.y_j for every entry (r, j) of the matrix, in its order."""

    def scored_losses(
        self, matrix: Csr, pair_weight: Vector, scores: Factors, factors: Factors, gram: Factors
    ) -> Vector:
        """Return the losses, given the scores x_r.y_j of the matrix's entries, and G."""

    def update_block(
        self,
        rows: Rows,
        block: slice,
        others: Factors,
        gram: Factors,
        factors: Factors,
        scores: Factors,
        positions: Positions | None = None,
    ) -> Solved:
        """Solve every row for the coordinates `block`, given the rest; see `Subspace`.

        `gram` holds the columns `block` of G. Both `factors` and `scores`, those of the matrix's
        entries, are updated in place; entry e has its score at positions[e], or at e. What is
        reported is about the block alone, so that the sums over the blocks are about the rows.
        Raises `SolveError` with the first row that cannot be solved.
        """

    def index(self, factors: Factors) -> "Index":
        """Return the factors in a form that is searched again and again."""

    def sketch(self, factors: Factors) -> Any:
        """Return an index for `topk`; only the same backend looks inside."""

    def topk(
        self,
        queries: Factors,
        factors: Factors,
        k: int,
        *,
        sketch: Any = None,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the k best columns of queries @ factors.T per row, best first, and their scores.

        Ties rank by index. `exclude` lists columns to leave out per row, `exclude_all` for every
        row. Where fewer than k columns are left, ids are padded with -1 and scores with
        -FLT_MAX. A column whose score is NaN or minus infinity is never returned. One query and
        a batch give the same bits, and so does a `sketch` of the factors.
        """
