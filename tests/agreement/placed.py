"""Verbs on NumPy arrays: brought to where a backend works, and back."""

import dataclasses

import numpy as np

from safecf.backends import find_backend

TWIN = find_backend("numpy")()


def assert_same(backend, actual, expected):
    """The same bits, where the backend promises them, else up to rounding."""
    if backend.same_bits:
        np.testing.assert_array_equal(actual, expected)
    else:
        largest = np.abs(expected).max(initial=0)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6 * max(1, largest))


def variants_of(kind, num_threads=2):
    """Return a backend in all the ways in which it may run here, if it has several."""
    if hasattr(kind, "variants"):
        return kind.variants(num_threads)
    return [kind(num_threads)]


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


def losses(backend, matrix, pair_weight, factors, fixed):
    placed = backend.place(np.array(factors))
    return backend.fetch(backend.losses(backend.place_matrix(matrix), pair_weight, placed, fixed))


def gram(backend, factors, weight=None, block=None):
    return backend.fetch(backend.gram(backend.place(factors), weight, block))
