"""The native eigensolver: as accurate as LAPACK, with the same bits for any number of threads."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safecf import _core
from safecf.backends.blas import LAPACK_FACTORS, eigenbasis, single_threaded_blas
from safecf.errors import SolveError

EPS = np.finfo(np.float64).eps


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread():
    with single_threaded_blas():
        yield


def eigen(matrix, num_threads=2, isa="auto"):
    """Return the eigenvalues and, in columns, the eigenvectors."""
    values, basis = np.empty(len(matrix)), np.empty_like(matrix)
    _core.eigen(matrix, values, basis, _core.Execution(num_threads, isa))
    return values, basis


def orthogonal(d, random):
    return np.linalg.qr(random.normal(size=(d, d)))[0]


def with_spectrum(values, random):
    """Return a symmetric matrix with these eigenvalues."""
    basis = orthogonal(len(values), random)
    matrix = (basis * values) @ basis.T
    return (matrix + matrix.T) / 2


def gramian(d, random):
    factors = random.normal(size=(2 * d, d)).astype(np.float32)
    return np.float64(factors.T @ factors)


# What the matrices are, by name.
MATRICES = {
    "symmetric": lambda d, random: with_spectrum(random.normal(size=d), random),
    "gramian": gramian,
    "rank-deficient": lambda d, random: with_spectrum(
        np.arange(d) % 4 * (np.arange(d) < 9), random
    ),
    "clustered": lambda d, random: with_spectrum(1 + 1e-14 * random.normal(size=d), random),
    "two-clusters": lambda d, random: with_spectrum(np.arange(d) % 2 + 1e-9 * np.arange(d), random),
    "graded": lambda d, random: with_spectrum(10.0 ** -np.linspace(0, 18, d), random),
    "zero": lambda d, random: np.zeros((d, d)),
    "identity": lambda d, random: np.eye(d),
    "diagonal": lambda d, random: np.diag(random.normal(size=d)),
    "ones": lambda d, random: np.ones((d, d)),
    "block-diagonal": lambda d, random: scipy.linalg.block_diag(
        gramian(d - d // 2, random), np.zeros((d // 2, d // 2))
    ),
    "tridiagonal": lambda d, random: np.diag(np.full(d, 2.0)) - np.eye(d, k=1) - np.eye(d, k=-1),
    "glued": lambda d, random: (
        np.diag(np.abs(np.arange(d) % 21 - 10.0))
        + np.diag(np.where(np.arange(1, d) % 21, 1.0, 1e-9), 1)
        + np.diag(np.where(np.arange(1, d) % 21, 1.0, 1e-9), -1)
    ),
    "tiny-rows": lambda d, random: np.diag(np.arange(1.0, d + 1)) + np.full((d, d), 1e-160),
}


def errors(matrix, values, basis):
    """|A Q - Q diag(values)| relative to |A|, and |Q'Q - I|, in units of the rounding."""
    scale = np.abs(values).max() or 1
    residual = np.abs((matrix / scale) @ basis - basis * (values / scale)).max()
    return residual / EPS, np.abs(basis.T @ basis - np.eye(len(values))).max() / EPS


def check_accuracy(matrix, values, basis):
    """Not worse than a few times what LAPACK finds, and eigenvalues that agree with its."""
    expected, reference = scipy.linalg.eigh(matrix)
    found, theirs = errors(matrix, values, basis), errors(matrix, expected, reference)
    d = len(values)
    assert found[0] <= 4 * theirs[0] + 10 + d / 10
    assert found[1] <= 4 * theirs[1] + 10 + d / 10
    assert (np.diff(values) >= 0).all()
    rounding = (10 + d) * EPS * np.abs(expected).max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding)


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(MATRICES)),
    d=st.integers(1, 130) | st.sampled_from([200, 257, 300]),
    exponent=st.just(0) | st.integers(-900, 900),
    isa=st.sampled_from(["auto", *_core.isas()]),
    threads=st.integers(2, 7),
    seed=st.integers(0, 2**32 - 1),
)
@example("glued", 333, 0, "auto", 3, 1)
@example("gramian", 211, 0, "generic", 2, 1)
def test_it_is_as_accurate_as_lapack(name, d, exponent, isa, threads, seed):
    """For huge and tiny numbers, too; and the number of threads changes no bit."""
    matrix = np.ldexp(MATRICES[name](d, np.random.default_rng(seed)), exponent)
    values, basis = eigen(matrix, threads, isa)
    check_accuracy(np.ldexp(matrix, -exponent), np.ldexp(values, -exponent), basis)
    for found, expected in zip(eigen(matrix, 1, isa), (values, basis), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_upper_triangle_is_not_read():
    matrix = gramian(70, np.random.default_rng(3))
    upper = np.triu(np.full((70, 70), np.nan), 1)
    for found, expected in zip(eigen(np.tril(matrix) + upper), eigen(matrix), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gramian_that_is_not_finite_is_an_error(value):
    gram = np.eye(LAPACK_FACTORS + 1)
    gram[5, 3] = gram[3, 5] = value
    with pytest.raises(SolveError, match="Gramian"):
        eigenbasis(gram, _core.Execution(2))
    with pytest.raises(ValueError, match="gram is not finite"):
        eigen(gram)


@pytest.mark.parametrize("d", [LAPACK_FACTORS, LAPACK_FACTORS + 1, 200])
def test_a_gramian_of_low_rank_has_no_negative_eigenvalues(d):
    factors = np.random.default_rng(4).normal(size=(5, d)).astype(np.float32)
    gram = factors.T @ factors
    values, basis = eigenbasis(gram, _core.Execution(2))
    assert values.min() >= 0
    assert basis @ np.diag(values) @ basis.T == pytest.approx(gram, abs=1e-5 * float(gram.max()))
    expected, _ = eigenbasis(gram)
    assert values == pytest.approx(expected, abs=1e-12 * expected.max())
