"""The encoder: from a history to the factors of its user, without torch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.backends.blas import single_threaded_blas
from safecf.data.matrices.csr import Csr

Floats = NDArray[np.float32]


class Encoder(NamedTuple):
    """x_u = (mean_u, 1), mean_u = W2' tanh(W1' c_u / |c_u| + b1) + b2, with c_u the confidences.

    Each user is computed by itself: what comes out does not depend on the others in the batch.
    """

    hidden: Floats
    hidden_bias: Floats
    mean: Floats
    mean_bias: Floats

    @staticmethod
    def shapes(num_items: int, factors: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names."""
        latent = factors - 1
        return {
            "hidden": (num_items, factors),
            "hidden_bias": (factors,),
            "mean": (factors, latent),
            "mean_bias": (latent,),
        }

    def __call__(self, history: Csr) -> Floats:
        """Return one row of factors per row of `history`; zeros where there is nothing."""
        unit = Csr(history.indptr, history.indices, unit_weights(history), history.shape)
        hidden = unit.to_scipy() @ self.hidden
        hidden += self.hidden_bias
        np.tanh(hidden, out=hidden)
        factors = np.ones((history.num_rows, self.mean.shape[1] + 1), dtype=np.float32)
        # A stack of vectors, because the rounding of a matrix product depends on its shape.
        with single_threaded_blas():
            factors[:, :-1] = (hidden[:, None, :] @ self.mean)[:, 0]
        factors[:, :-1] += self.mean_bias
        factors[np.diff(history.indptr) == 0] = 0
        return factors


def unit_weights(matrix: Csr) -> Floats:
    """c_rj / |c_r| for every interaction, |c_r|^2 = sum_j c_rj^2."""
    counts = np.diff(matrix.indptr)
    if matrix.weights is None:
        return np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    squares = np.append(matrix.weights.astype(np.float64) ** 2, 0)
    lengths = np.sqrt(np.add.reduceat(squares, matrix.indptr[:-1]))
    return np.asarray(matrix.weights / np.repeat(lengths, counts), dtype=np.float32)
