"""The protocol of a backend: a few coarse verbs over the interactions and the factors."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import Solver
from safecf.data.matrix import Csr

Factors = NDArray[Any]
Ids = NDArray[np.int32]


class Solved(NamedTuple):
    """What a half-step reports per row: |x_new - x_old|^2 and |x_new|^2."""

    change: Vector
    norm: Vector


class Backend(Protocol):
    """The verbs that the loop and the models are written in.

    `prepare` returns whatever the backend likes to know about the fixed side; only the same
    backend looks inside. All verbs give the same bits for every number of threads.
    """

    name: str
    dtype: np.dtype[Any]

    def gram(self, factors: Factors, weight: Vector | None = None) -> Factors:
        """Return F' diag(weight) F."""

    def prepare(self, factors: Factors, gram: Factors) -> Any:
        """Get the fixed side of a half-step ready: its factors and G."""

    def solve_rows(self, rows: Rows, fixed: Any, factors: Factors, solver: Solver) -> Solved:
        """Solve every row of `rows` and write the solutions into `factors`, in place.

        What `factors` holds is the starting point of the iterative solvers. A row whose
        right-hand side vanishes becomes zero. Raises `SolveError` with the first row that
        cannot be solved.
        """

    def losses(self, matrix: Csr, pair_weight: Vector, factors: Factors, fixed: Any) -> Vector:
        """Return a_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r for every row."""

    def topk(
        self,
        queries: Factors,
        factors: Factors,
        k: int,
        *,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the k best columns of queries @ factors.T per row, best first, and their scores.

        Ties rank by index. `exclude` lists columns to leave out per row, `exclude_all` for every
        row. Where fewer than k columns are left, ids are padded with -1 and scores with
        -FLT_MAX. A column whose score is NaN or minus infinity is never returned. Few queries are
        scored in another order of summation than many, so their scores may differ by rounding.
        """
