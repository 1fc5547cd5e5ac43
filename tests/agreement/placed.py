"""Verbs on NumPy arrays: brought to where a backend works, and back."""

import dataclasses

import numpy as np

from safecf.backends import find_backend

TWIN = find_backend("numpy")()


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
    return backend.losses(backend.place_matrix(matrix), pair_weight, placed, fixed)


def gram(backend, factors, weight=None, block=None):
    return backend.fetch(backend.gram(backend.place(factors), weight, block))
