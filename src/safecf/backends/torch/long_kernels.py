"""Triton kernels for rows with many pairs: CG step by step, many programs to a row."""

import triton
import triton.language as tl

from safecf.backends.torch.kernels import (
    advance_row,
    begin_row,
    load_pairs,
    load_shared,
    store_row,
)


@triton.jit
def pass_over_pairs(
    tasks,
    indptr,
    indices,
    confidence,
    row_weight,
    col_weight,
    fixed,
    going,
    vectors,
    image,
    right,
    squares,
    d,
    fixed_stride,
    D: tl.constexpr,
    N: tl.constexpr,
    T: tl.constexpr,
    WEIGHTED: tl.constexpr,
    FIRST: tl.constexpr,
):
    """Partial sums over T pairs of a long row: sum p (y.v) y, and on FIRST sum p y, sum p y^2.

    Task t is (place among the long rows, row, first pair); its sums go to row t of the outputs.
    FIRST is about all rows, whose vectors are the factors; else only about those that go on.
    """
    task = tl.program_id(0).to(tl.int64)
    place = tl.load(tasks + 3 * task)
    wanted = True if FIRST else tl.load(going + place) != 0
    if wanted:
        row = tl.load(tasks + 3 * task + 1)
        begin = tl.load(indptr + row) + tl.load(tasks + 3 * task + 2)
        length = tl.minimum(tl.load(indptr + row + 1) - begin, T)
        at = tl.arange(0, D)
        here = at < d
        weight = tl.load(row_weight + row).to(tl.float32)
        vector = tl.load(vectors + (row if FIRST else place) * d + at, mask=here, other=0.0)
        total = tl.zeros([D], tl.float32)
        b = tl.zeros([D], tl.float32)
        squared = tl.zeros([D], tl.float32)
        for tile in range(0, length, N):
            p, wide = load_pairs(
                tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
                fixed, fixed_stride, at, here, WEIGHTED,
            )  # fmt: skip
            if FIRST:
                b += tl.sum(p[:, None] * wide, 0)
                squared += tl.sum(p[:, None] * wide * wide, 0)
            total += tl.sum((p * tl.sum(wide * vector[None, :], 1))[:, None] * wide, 0)
        tl.store(image + task * d + at, total, mask=here)
        if FIRST:
            tl.store(right + task * d + at, b, mask=here)
            tl.store(squares + task * d + at, squared, mask=here)


@triton.jit
def _sum_tasks(partial, first, last, at, here, d, D: tl.constexpr, N: tl.constexpr):
    """Add up the tasks of a long row, always in the same order."""
    total = tl.zeros([D], tl.float32)
    for tile in range(first, last, N):
        task = tile + tl.arange(0, N)
        inside = (task < last)[:, None] & here[None, :]
        total += tl.sum(tl.load(partial + task[:, None] * d + at[None, :], inside, other=0.0), 0)
    return total


@triton.jit
def begin_rows(
    rows,
    offsets,
    image,
    right,
    squares,
    gram_weight,
    ridge,
    spectrum,
    factors,
    change,
    norm,
    start,
    start_image,
    preconditioner,
    residuals,
    steps,
    numbers,
    going,
    d,
    tolerance,
    most_stretch,
    smallest,
    D: tl.constexpr,
    N: tl.constexpr,
    SCALED: tl.constexpr,
):
    """Begin the CG of long rows, given the sums of the first pass over their pairs.

    `start` and what follows is kept from step to step; `numbers` are energy, 1 / x0'Ax0 and the
    square of the residual that is small enough.
    """
    place = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + place)
    first, last = tl.load(offsets + place), tl.load(offsets + place + 1)
    at = tl.arange(0, D)
    here = at < d
    own = place * d + at
    old = tl.load(factors + row * d + at, mask=here, other=0.0)
    shared = load_shared(row, at, here, gram_weight, ridge, spectrum)
    b = _sum_tasks(right, first, last, at, here, d, D, N)
    diagonal = shared + _sum_tasks(squares, first, last, at, here, d, D, N)
    start_product = shared * old + _sum_tasks(image, first, last, at, here, d, D, N)
    x, residual, diagonal, step, energy, known, enough = begin_row(
        b, diagonal, start_product, old, here, tolerance, most_stretch, smallest, SCALED
    )
    store_row(row, x, old, at, here, d, factors, change, norm)
    tl.store(start + own, old, mask=here)
    tl.store(start_image + own, start_product, mask=here)
    tl.store(preconditioner + own, diagonal, mask=here)
    tl.store(residuals + own, residual, mask=here)
    tl.store(steps + own, step, mask=here)
    tl.store(numbers + 3 * place, energy)
    tl.store(numbers + 3 * place + 1, known)
    tl.store(numbers + 3 * place + 2, enough)
    tl.store(going + place, (tl.sum(residual * residual, 0) > enough).to(tl.int32))


@triton.jit
def advance_rows(
    rows,
    offsets,
    image,
    gram_weight,
    ridge,
    spectrum,
    factors,
    change,
    norm,
    start,
    start_image,
    preconditioner,
    residuals,
    steps,
    numbers,
    going,
    d,
    smallest,
    D: tl.constexpr,
    N: tl.constexpr,
):
    """One step of CG for the long rows that go on; see `begin_rows`."""
    place = tl.program_id(0).to(tl.int64)
    if tl.load(going + place) != 0:
        row = tl.load(rows + place)
        first, last = tl.load(offsets + place), tl.load(offsets + place + 1)
        at = tl.arange(0, D)
        here = at < d
        own = place * d + at
        x = tl.load(factors + row * d + at, mask=here, other=0.0)
        old = tl.load(start + own, mask=here, other=0.0)
        start_product = tl.load(start_image + own, mask=here, other=0.0)
        diagonal = tl.load(preconditioner + own, mask=here, other=1.0)
        residual = tl.load(residuals + own, mask=here, other=0.0)
        step = tl.load(steps + own, mask=here, other=0.0)
        energy = tl.load(numbers + 3 * place)
        known = tl.load(numbers + 3 * place + 1)
        shared = load_shared(row, at, here, gram_weight, ridge, spectrum)
        product = shared * step + _sum_tasks(image, first, last, at, here, d, D, N)
        x, residual, step, energy, useless = advance_row(
            x, residual, step, product, diagonal, energy, known, start_product, old, here, smallest
        )
        large = tl.sum(residual * residual, 0) > tl.load(numbers + 3 * place + 2)
        store_row(row, x, old, at, here, d, factors, change, norm)
        tl.store(residuals + own, residual, mask=here)
        tl.store(steps + own, step, mask=here)
        tl.store(numbers + 3 * place, energy)
        tl.store(going + place, (large & ~useless).to(tl.int32))
