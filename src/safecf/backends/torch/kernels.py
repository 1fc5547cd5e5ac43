"""Triton kernels: whole solves of rows, and their losses; `long_kernels` has those of long rows.

Every kernel reads the fixed side (float32 or bfloat16) and vectors (float32 or float64) as they
are stored, and computes in float32. No kernel adds up in an order that depends on timing: reruns
give the same bits.

A program has so few threads that a tile of N fixed factors lies across all of them: sums over
factors are shuffles inside a warp, sums over pairs need nothing at all. With more threads they go
through shared memory, which took four times as long.
"""

import triton
import triton.language as tl


@triton.jit
def widen(values, found, N: tl.constexpr):
    """Read N numbers, and write them in float32: what Triton needs to work at all."""
    at = tl.arange(0, N)
    tl.store(found + at, tl.load(values + at).to(tl.float32))


@triton.jit
def load_pairs(
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
    weight = row_weight * tl.load(col_weight + columns, mask=inside, other=0.0).to(tl.float32)
    if WEIGHTED:
        weight *= tl.load(confidence + begin + index, mask=inside, other=0.0)
    factors = tl.load(
        fixed + columns.to(tl.int64)[:, None] * fixed_stride + at[None, :],
        mask=inside[:, None] & here[None, :],
        other=0.0,
    )
    return weight, factors.to(tl.float32)


@triton.jit
def load_shared(row, at, here, gram_weight, ridge, spectrum):
    """Return g_r values + ridge_r."""
    values = tl.load(spectrum + at, mask=here, other=0.0).to(tl.float32)
    g = tl.load(gram_weight + row).to(tl.float32)
    return g * values + tl.load(ridge + row).to(tl.float32)


@triton.jit
def _first_direction(b, start, start_image, most_stretch, smallest):
    """Return 1 / x0'Ax0, or 0 where x0 is an ordinary start, and how far to go along it."""
    energy = tl.sum(start * start_image, 0)
    divisor = tl.where(energy > smallest, energy, 1.0)
    stretch = tl.sum(b * start, 0) / divisor
    useful = (energy > smallest) & (tl.abs(stretch) <= most_stretch)
    return tl.where(useful, 1.0 / divisor, 0.0), tl.where(useful, stretch, 1.0)


@triton.jit
def begin_row(
    b, diagonal, image, old, here, tolerance, most_stretch, smallest, SCALED: tl.constexpr
):
    """Return the state of CG before the first step, given b, the diagonal of A, and A x0.

    That is x, the residual, the preconditioner, the step, its energy, 1 / x0'Ax0, and the square
    of the residual that is small enough. A row without a right-hand side becomes zero.
    """
    size = tl.sum(b * b, 0)
    enough = tl.maximum(tolerance * tolerance * size, smallest)
    residual = tl.where(here, b - image, 0.0)
    known, stretch = _first_direction(b, old, image, most_stretch if SCALED else -1.0, smallest)
    stretch = tl.where(tl.sum(residual * residual, 0) > enough, stretch, 1.0)
    if not SCALED:
        diagonal = tl.full(b.shape, 1.0, tl.float32)
    x = tl.where(size == 0, 0.0, stretch * old)
    residual = tl.where(size == 0, 0.0, tl.where(here, b - stretch * image, 0.0))
    scaled = tl.where(here, residual / diagonal, 0.0)
    energy = tl.sum(residual * scaled, 0)
    step = scaled - known * tl.sum(image * scaled, 0) * old
    return x, residual, diagonal, step, energy, known, enough


@triton.jit
def advance_row(
    x, residual, step, image, diagonal, energy, known, start_image, old, here, smallest
):
    """Return x, the residual, the next step and its energy, and whether this one was useless."""
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
    return x, residual, step, energy, useless


@triton.jit
def store_row(row, x, old, at, here, d, factors, change, norm):
    """Store a row of the factors, |x - x_old|^2 and |x|^2."""
    tl.store(factors + row * d + at, x, mask=here)
    tl.store(change + row, tl.sum((x - old) * (x - old), 0))
    tl.store(norm + row, tl.sum(x * x, 0))


@triton.jit
def solve_rows(
    order,
    indptr,
    indices,
    confidence,
    row_weight,
    col_weight,
    fixed,
    gram_weight,
    ridge,
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
    weight = tl.load(row_weight + row).to(tl.float32)
    shared = load_shared(row, at, here, gram_weight, ridge, spectrum)
    old = tl.load(factors + row * d + at, mask=here, other=0.0)
    b = tl.zeros([D], tl.float32)
    diagonal = shared
    image = shared * old
    for tile in range(0, length, N):
        p, wide = load_pairs(
            tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
            fixed, fixed_stride, at, here, WEIGHTED,
        )  # fmt: skip
        b += tl.sum(p[:, None] * wide, 0)
        diagonal += tl.sum(p[:, None] * wide * wide, 0)
        image += tl.sum((p * tl.sum(wide * old[None, :], 1))[:, None] * wide, 0)
    start_image = image
    x, residual, diagonal, step, energy, known, enough = begin_row(
        b, diagonal, image, old, here, tolerance, most_stretch, smallest, SCALED
    )
    iteration = 0
    while (iteration < max_iterations) & (tl.sum(residual * residual, 0) > enough):
        image = shared * step
        for tile in range(0, length, N):
            p, wide = load_pairs(
                tile + tl.arange(0, N), begin, length, weight, indices, confidence, col_weight,
                fixed, fixed_stride, at, here, WEIGHTED,
            )  # fmt: skip
            image += tl.sum((p * tl.sum(wide * step[None, :], 1))[:, None] * wide, 0)
        x, residual, step, energy, useless = advance_row(
            x, residual, step, image, diagonal, energy, known, start_image, old, here, smallest
        )
        iteration += 1
        iteration = tl.where(useless, max_iterations, iteration)
    store_row(row, x, old, at, here, d, factors, change, norm)


@triton.jit
def row_losses(
    order,
    indptr,
    indices,
    confidence,
    pair_weight,
    ridge,
    fixed,
    spectrum,
    factors,
    losses,
    d,
    fixed_stride,
    D: tl.constexpr,
    N: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PENALISED: tl.constexpr,
):
    """a_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 sum_k values_k x_rk^2, and ridge_r/2 |x_r|^2."""
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
    values = tl.load(spectrum + at, mask=here, other=0.0).to(tl.float32)
    loss = tl.load(pair_weight + row).to(tl.float32) / 2 * tl.sum(total, 0)
    loss += tl.sum(values * x * x, 0) / 2
    if PENALISED:
        loss += tl.load(ridge + row).to(tl.float32) / 2 * tl.sum(x * x, 0)
    tl.store(losses + row, loss)
