"""Methods of backends on NumPy arrays, brought to where a backend works, and cases for them."""

import dataclasses
import os
from functools import cache
from itertools import product

import numpy as np
import pytest

from safecf.backends import find_backend
from tests.installed import backend_kinds
from tests.problems import LOSSES, matrix_of, problem_of

TWIN = find_backend("numpy")()

# Around the widths of vectors, groups, tiles and chunks, and both sides of the dual switch.
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 127, 128, 129, 255, 257, 400]
WIDTHS = (1, 3, 8, 15, 16, 17, 32, 33, 64, 100, 129, 300)
# Around the widths of tasks on a GPU, and of rows that are solved in lockstep there.
LONG = [0, 1, 2, 15, 16, 17, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2500]
WIDE = (512, 1100, 2048)
FOR_A_GPU = (1100, 2048)

# Each width with another loss, risk and weights: a diagonal of the table, not the table.
KINDS = list(product(LOSSES, ("mean", "cvar"), (False, True)))
CASES = list(zip(WIDTHS, KINDS, strict=True))
WIDE_CASES = [pytest.param(d, ("normalised", "cvar", True), marks=pytest.mark.slow) for d in WIDE]
every_case = pytest.mark.parametrize(("d", "kind"), [*CASES, *WIDE_CASES], ids=str)


def weights_of(risk, count, rng):
    """Return weights as a risk leaves them: all the same, or from 0 to 1 with exact zeros."""
    if risk == "mean":
        return np.full(count, 0.3)
    return np.clip(rng.normal(0.3, 0.4, count), 0, 1)


def make_case(d, kind):
    """Return (problem, weights, X, Y) with rows of all lengths."""
    loss, risk, weighted = kind
    rng = np.random.default_rng(d)
    lengths, columns = (LONG, 3000) if d in WIDE else (LENGTHS, 420)
    users = matrix_of(lengths, columns, rng, weighted=weighted)
    weights = weights_of(risk, users.num_rows, rng)
    x, y = (floats(rng.normal(0, d**-0.5, (count, d))) for count in users.shape)
    return problem_of(users, LOSSES[loss](0.02)), weights, x, y


def half_steps(d, kind):
    """Yield the users' and the items' half-step: rows, fixed side, G, and the start.

    Of wide factors it is the users' alone: the reference takes too long for thousands of rows.
    """
    problem, weights, x, y = make_case(d, kind)
    yield problem.user_rows(weights), y, 0.02 * gram(TWIN, y), x
    if d not in WIDE:
        yield problem.item_rows(weights), x, 0.02 * gram(TWIN, x, weights), y


@cache
def solved(d, kind, solver):
    """Return the half-steps, each with the reference's solutions and report."""
    found = []
    for rows, fixed, shared, start in half_steps(d, kind):
        both = solve(TWIN, rows, fix(TWIN, fixed, shared), start, solver)
        found.append((rows, fixed, shared, start, *both))
    return found


def floats(values):
    return np.asarray(values, dtype=np.float32)


def assert_same(backend, actual, expected):
    """The same bits, where the backend promises them, else up to rounding."""
    if backend.same_bits:
        np.testing.assert_array_equal(actual, expected)
    else:
        largest = np.abs(expected).max(initial=0)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6 * max(1, largest))


def close(actual, expected, tolerance):
    """The largest difference is at most this share of the largest value."""
    atol = tolerance * max(np.abs(expected).max(initial=0), 1e-30)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def variants_of(kind, num_threads=2):
    """Return a backend in all the ways in which it may run here, if it has several."""
    if hasattr(kind, "variants"):
        return kind.variants(num_threads)
    return [kind(num_threads)]


def fast_backends():
    kinds, device = backend_kinds(), os.environ.get("SAFECF_DEVICE", "")
    found = [each for name in kinds if name != TWIN.name for each in variants_of(kinds[name])]
    found = [each for each in found if str(getattr(each, "device", "cpu")).startswith(device)]
    assert found, f"no backend works on SAFECF_DEVICE={device}"
    return found


def with_threads(backend, num_threads):
    """Return the same variant with another number of threads."""
    found = variants_of(type(backend), num_threads)
    return next(each for each in found if repr(each) == repr(backend))


def placed_rows(backend, rows):
    return dataclasses.replace(rows, matrix=backend.place_matrix(rows.matrix))


def fix(backend, factors, gram):
    return backend.fix(backend.place(factors), backend.place(gram))


def solve(backend, rows, fixed, start, solver):
    """Return the solutions and the report; `fixed` is what `fix` or `fix_rotated` returned."""
    factors = backend.place(np.array(start))
    report = backend.solve_rows(placed_rows(backend, rows), fixed, factors, solver)
    return backend.fetch(factors), report


def losses(backend, matrix, pair_weight, factors, fixed, ridge=None):
    placed, matrix = backend.place(np.array(factors)), backend.place_matrix(matrix)
    return backend.fetch(backend.losses(matrix, pair_weight, placed, fixed, ridge))


def gram(backend, factors, weight=None, block=None, solver=None):
    return backend.fetch(backend.gram(backend.place(factors), weight, block, solver))


def gradients(backend, rows, fixed, factors, step):
    """Return A x - b: what a step of size -1 along the plain gradient adds."""
    factors = backend.place(np.array(factors))
    new, _, _ = backend.descend(placed_rows(backend, rows), fixed, factors, None, step, 1)
    return backend.fetch(new) - backend.fetch(factors)


FAST = fast_backends()
