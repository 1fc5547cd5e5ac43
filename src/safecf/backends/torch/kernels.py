"""Triton kernels: whole solves of rows, and passes over the pairs of rows.

Every kernel reads the fixed side as it is stored (float32 or bfloat16) and computes in float32. No
kernel adds up in an order that depends on timing: reruns give the same bits.

A program has so few threads that a tile of N fixed factors lies across all of them: sums over
factors are shuffles inside a warp, sums over pairs need nothing at all. With more threads they go
through shared memory, which took four times as long.
"""

import triton
import triton.language as tl


@triton.jit
def _pairs(
    index,
    begin,
    length,
    row_weight,
    indices,
    confidence,
    col_weight,
    fixed,
    fixed_stride,
    at,
    here,
    WEIGHTED: tl.constexpr,
):
    """Return the pair weights p_rj and the fixed factors y_j of a tile of entries."""
    inside = index < length
    columns = tl.load(indices + begin + index, mask=inside, other=0)
    weight = row_weight * tl.load(col_weight + columns, mask=inside, other=0.0)
    if WEIGHTED:
        weight *= tl.load(confidence + begin + index, mask=inside, other=0.0)
    factors = tl.load(
        fixed + columns.to(tl.int64)[:, None] * fixed_stride + at[None, :],
        mask=inside[:, None] & here[None, :],
        other=0.0,
    )
    return weight, factors.to(tl.float32)


@triton.jit
def _first_direction(b, start, start_image, most_stretch, smallest):
    """Return 1 / x0'Ax0, or 0 where x0 is an ordinary start, and how far to go along it."""
    energy = tl.sum(start * start_image, 0)
    divisor = tl.where(energy > smallest, energy, 1.0)
    stretch = tl.sum(b * start, 0) / divisor
    useful = (energy > smallest) & (tl.abs(stretch) <= most_stretch)
    return tl.where(useful, 1.0 / divisor, 0.0), tl.where(useful, stretch, 1.0)


@triton.jit
def solve_rows(
    order,
    indptr,
    indices,
    confidence,
    row_weight,
    col_weight,
    gram_weight,
    ridge,
    fixed,
    spectrum,
    factors,
    change,
    norm,
    d,
    fixed_stride,
    max_iterations,
    tolerance,
    most_stretch,
    smallest,
    D: tl.constexpr,
    N: tl.constexpr,
    WEIGHTED: tl.constexpr,
    SCALED: tl.constexpr,
):
    """Spectral CG for rows of any length, whose fixed factors are read again in every pass."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    begin = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - begin
    at = tl.arange(0, D)
    here = at < d
    weight = tl.load(row_weight + row)
    g = tl.load(gram_weight + row)
    shared = g * tl.load(spectrum + at, mask=here, other=0.0) + tl.load(ridge + row)
    old = tl.load(factors + row * d + at, mask=here, other=0.0)
    b = tl.zeros([D], tl.float32)
    diagonal = shared
    image = shared * old
    for tile in range(0, length, N):
        p, wide = _pairs(
            tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
            fixed, fixed_stride, at, here, WEIGHTED,
        )  # fmt: skip
        b += tl.sum(p[:, None] * wide, 0)
        diagonal += tl.sum(p[:, None] * wide * wide, 0)
        image += tl.sum((p * tl.sum(wide * old[None, :], 1))[:, None] * wide, 0)
    size = tl.sum(b * b, 0)
    enough = tl.maximum(tolerance * tolerance * size, smallest)
    start_image = image
    residual = tl.where(here, b - start_image, 0.0)
    x = old
    known = 0.0
    if SCALED:
        known, stretch = _first_direction(b, old, start_image, most_stretch, smallest)
        stretch = tl.where(tl.sum(residual * residual, 0) > enough, stretch, 1.0)
        x = stretch * old
        residual = tl.where(here, b - stretch * start_image, 0.0)
    else:
        diagonal = tl.full([D], 1.0, tl.float32)
    scaled = tl.where(here, residual / diagonal, 0.0)
    energy = tl.sum(residual * scaled, 0)
    step = scaled - known * tl.sum(start_image * scaled, 0) * old
    iteration = 0
    while (iteration < max_iterations) & (tl.sum(residual * residual, 0) > enough):
        image = shared * step
        for tile in range(0, length, N):
            p, wide = _pairs(
                tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
                fixed, fixed_stride, at, here, WEIGHTED,
            )  # fmt: skip
            image += tl.sum((p * tl.sum(wide * step[None, :], 1))[:, None] * wide, 0)
        slope = tl.sum(residual * step, 0)
        curvature = tl.sum(step * image, 0)
        useless = (slope <= smallest) | (curvature == 0)  # nothing but rounding is left
        move = tl.where(useless, 0.0, slope / tl.where(useless, 1.0, curvature))
        x += move * step
        residual -= move * image
        scaled = tl.where(here, residual / diagonal, 0.0)
        previous = energy
        energy = tl.sum(residual * scaled, 0)
        turn = tl.where(previous == 0, 0.0, energy / tl.where(previous == 0, 1.0, previous))
        step = scaled - known * tl.sum(start_image * scaled, 0) * old + turn * step
        iteration += 1
        iteration = tl.where(useless, max_iterations, iteration)
    x = tl.where(size == 0, 0.0, x)
    tl.store(factors + row * d + at, x, mask=here)
    tl.store(change + row, tl.sum((x - old) * (x - old), 0))
    tl.store(norm + row, tl.sum(x * x, 0))


@triton.jit
def pass_over_pairs(
    tasks,
    indptr,
    indices,
    confidence,
    row_weight,
    col_weight,
    fixed,
    vectors,
    image,
    right,
    diagonal,
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
    """
    task = tl.program_id(0).to(tl.int64)
    place = tl.load(tasks + 3 * task)
    row = tl.load(tasks + 3 * task + 1)
    first = tl.load(tasks + 3 * task + 2)
    begin = tl.load(indptr + row) + first
    length = tl.minimum(tl.load(indptr + row + 1) - begin, T)
    at = tl.arange(0, D)
    here = at < d
    weight = tl.load(row_weight + row)
    vector = tl.load(vectors + place * d + at, mask=here, other=0.0)
    sums = tl.zeros([D], tl.float32)
    b = tl.zeros([D], tl.float32)
    squares = tl.zeros([D], tl.float32)
    for tile in range(0, length, N):
        p, wide = _pairs(
            tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
            fixed, fixed_stride, at, here, WEIGHTED,
        )  # fmt: skip
        if FIRST:
            b += tl.sum(p[:, None] * wide, 0)
            squares += tl.sum(p[:, None] * wide * wide, 0)
        sums += tl.sum((p * tl.sum(wide * vector[None, :], 1))[:, None] * wide, 0)
    tl.store(image + task * d + at, sums, mask=here)
    if FIRST:
        tl.store(right + task * d + at, b, mask=here)
        tl.store(diagonal + task * d + at, squares, mask=here)


@triton.jit
def sum_tasks(offsets, partial, out, d, D: tl.constexpr):
    """Add up the tasks of a long row, in their order."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * D + tl.arange(0, D)
    total = tl.zeros([D], tl.float32)
    for task in range(tl.load(offsets + row), tl.load(offsets + row + 1)):
        total += tl.load(partial + task * d + at, mask=at < d, other=0.0)
    tl.store(out + row * d + at, total, mask=at < d)


@triton.jit
def row_losses(
    order,
    indptr,
    indices,
    confidence,
    fixed,
    factors,
    errors,
    d,
    fixed_stride,
    D: tl.constexpr,
    N: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """sum_j c_rj (1 - x_r.y_j)^2."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    begin = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - begin
    at = tl.arange(0, D)
    here = at < d
    x = tl.load(factors + row * d + at, mask=here, other=0.0)
    total = tl.zeros([N], tl.float32)
    for tile in range(0, length, N):
        index = tile + tl.arange(0, N)
        inside = index < length
        columns = tl.load(indices + begin + index, mask=inside, other=0).to(tl.int64)
        wide = tl.load(
            fixed + columns[:, None] * fixed_stride + at[None, :],
            mask=inside[:, None] & here[None, :],
            other=0.0,
        ).to(tl.float32)
        error = 1.0 - tl.sum(wide * x[None, :], 1)
        error *= error
        if WEIGHTED:
            error *= tl.load(confidence + begin + index, mask=inside, other=0.0)
        total += tl.where(inside, error, 0.0)
    tl.store(errors + row, tl.sum(total, 0))
