"""What backends share that keep factors as NumPy arrays in the host's memory."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from safecf.als.capabilities import HostReport
from safecf.als.loss import Vector
from safecf.als.optimizers import Moments
from safecf.als.rows import Rows
from safecf.als.solvers import Gradient
from safecf.data.matrices.csr import Csr
from safecf.free_memory import training_bytes

Array = NDArray[Any]

CACHE_LINE = 64  # bytes


class HostBackend:
    """Factors are arrays of `dtype` that start on a cache line, matrices are `Csr`."""

    name: str
    dtype: np.dtype[Any]
    num_threads: int
    same_bits = True

    def __init__(self, num_threads: int = 0) -> None:
        self.num_threads = num_threads

    @classmethod
    def variants(cls, num_threads: int) -> list[Self]:
        """Return the backend in all the ways in which it may run here; tests compare them all."""
        return [cls(num_threads)]

    def __repr__(self) -> str:
        return self.name

    def guarded(self) -> AbstractContextManager[None]:
        """Do nothing: NumPy's errors are MemoryErrors already."""
        return nullcontext()

    def host_bytes(self, users: int, items: int, interactions: int, factors: int) -> int:
        """Return all that training takes."""
        found = training_bytes(users, items, interactions, factors, self.num_threads)
        return found * self.dtype.itemsize // np.dtype(np.float32).itemsize

    def place_matrix(self, matrix: Csr) -> Csr:
        """Return the matrix itself."""
        return matrix

    def place(self, factors: Array) -> Array:
        """Return the factors in `dtype`, on a cache line: themselves, if they are so already."""
        if factors.dtype == self.dtype and factors.ctypes.data % CACHE_LINE == 0:
            return factors
        return self.copy(factors)

    def place_vector(self, values: Array) -> Array:
        """Return the vector itself."""
        return values

    def fetch(self, factors: Array) -> Array:
        """Return the factors, or a vector, themselves."""
        return factors

    def copy(self, factors: Array) -> Array:
        """Return a copy on a cache line."""
        rows, columns = factors.shape
        found = aligned(rows, columns, self.dtype)
        found[:] = factors
        return found

    def zeros(self, rows: int, columns: int) -> Array:
        """Return zeros."""
        return np.zeros((rows, columns), dtype=self.dtype)


class HostGradients:
    """Gradient steps in NumPy, for host backends that compute gradients."""

    def gradients(self, rows: Rows, fixed: Any, factors: Array) -> Array:
        """Return A_r x_r - b_r, the slope of every row's objective; see `Rows`."""
        raise NotImplementedError

    @np.errstate(all="ignore")
    def descend(
        self,
        rows: Rows,
        fixed: Any,
        factors: Array,
        moments: Moments | None,
        solver: Gradient,
        epoch: int,
    ) -> tuple[Array, Moments | None, HostReport]:
        """X - step_size * direction, in NumPy, from the backend's own gradients."""
        gradient = self.gradients(rows, fixed, factors)
        step, moments = solver.optimizer.direction(gradient, moments, epoch)
        step *= -solver.step_size
        new = factors + step
        return new, moments, HostReport(_squares(step), _squares(new))


def aligned(rows: int, columns: int, dtype: DTypeLike) -> Array:
    """Return an empty matrix that starts on a cache line: no vector of it lies across two lines."""
    size = rows * columns * np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return np.asarray(raw[offset : offset + size].view(dtype).reshape(rows, columns))


def _squares(rows: Array) -> Vector:
    """|x_r|^2."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
