"""Row solvers in PyTorch: rows in lockstep, or rows of similar length together."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends.torch.budget import Budget
from safecf.backends.torch.matrices import Bucket
from safecf.backends.torch.passes import Products
from safecf.backends.torch.reports import TorchReport
from safecf.backends.torch.systems import Systems

# Below, squares and energies are no longer normal numbers.
SMALLEST = 1e-34


def solve_iteratively(
    systems: Systems, factors: Tensor, report: TorchReport, solver: CG | SpectralCG, budget: Budget
) -> None:
    """CG for all rows in lockstep, as many as the budget allows at a time."""

    def solve(rows: slice) -> None:
        some = systems.part(rows)
        products = Products(some, budget.numbers)
        found = conjugate_gradients(some.shared(), products, factors[rows], solver)
        report.write(factors, rows, found)

    budget.each(range(len(factors) + 1), factors.shape[1], solve)


def conjugate_gradients(
    shared: Tensor, products: Products, start: Tensor, solver: CG | SpectralCG
) -> Tensor:
    """Minimise 1/2 x'Ax - b'x along A-conjugate directions, from `start`, for all rows at once.

    A row that is solved, or whose steps vanish, stands still while the others go on.
    """
    right, squares, start_image = products.first(start)
    start_image.addcmul_(shared, start)
    x, residual, known = start.clone(), right - start_image, None
    enough = ((solver.tolerance * right.norm(dim=1)) ** 2).clamp_(min=SMALLEST)
    going = _dots(residual, residual) > enough
    if isinstance(solver, SpectralCG):
        diagonal = squares.add_(shared)
        known, stretch = first_direction(right, start, start_image, solver)
        stretch = torch.where(going, stretch, 1.0)[:, None]
        x.mul_(stretch)
        torch.addcmul(right, stretch, start_image, value=-1, out=residual)
    else:
        diagonal = torch.ones_like(right)

    def conjugate(scaled: Tensor) -> Tensor:
        """Make M^-1 r conjugate to the start."""
        if known is None:
            return scaled
        along = known * _dots(start_image, scaled)
        return torch.addcmul(scaled, along[:, None], start, value=-1)

    scaled = residual / diagonal
    energy, step = _dots(residual, scaled), conjugate(scaled)
    for _ in range(solver.max_iterations):
        going &= _dots(residual, residual) > enough
        if not going.any():
            break
        image = products.image(step).addcmul_(shared, step)
        slope, curvature = _dots(residual, step), _dots(step, image)
        going &= (slope > SMALLEST) & (curvature != 0)  # else nothing but rounding is left
        length = torch.where(going, slope / curvature, 0.0)[:, None]
        x.addcmul_(length, step)
        residual.addcmul_(length, image, value=-1)
        scaled = residual / diagonal
        before, energy = energy, _dots(residual, scaled)
        turn = torch.where(going, energy / before, 0.0)[:, None]
        step = conjugate(scaled).addcmul_(turn, step)
    return torch.where((right != 0).any(dim=1)[:, None], x, 0.0)


def first_direction(
    right: Tensor, start: Tensor, start_image: Tensor, solver: SpectralCG
) -> tuple[Tensor, Tensor]:
    """Return 1 / x0'Ax0, or 0 where x0 is an ordinary start, and how far to go along it."""
    energy = _dots(start, start_image)
    stretch = _dots(right, start) / energy
    useful = (energy > SMALLEST) & (stretch.abs() <= solver.most_stretch)
    return torch.where(useful, 1 / energy, 0.0), torch.where(useful, stretch, 1.0)


def solve_exact(
    systems: Systems, factors: Tensor, report: TorchReport, solver: Exact, budget: Budget
) -> None:
    """Cholesky of I + B'B or, where a row has fewer pairs than factors, of I + BB'; see `Exact`."""
    d = factors.shape[1]

    def solve(bucket: Bucket) -> None:
        report.write(factors, bucket.rows, _solve_bucket(systems, bucket, budget.numbers))

    for bucket in budget.run(lambda: systems.matrix.by_length):
        # B of so many pairs, or B'B
        each_bucket(bucket, d * max(1, min(bucket.width, d)), solve, budget)


def each_bucket(
    bucket: Bucket, per_row: int, work: Callable[[Bucket], None], budget: Budget
) -> None:
    """Work on so many rows of a bucket at a time that temporaries fit."""
    edges = range(len(bucket.rows) + 1)
    budget.each(edges, per_row, lambda rows: work(bucket.part(rows)))


def _solve_bucket(systems: Systems, bucket: Bucket, numbers: int) -> Tensor:
    """Solve rows of similar length."""
    d = systems.fixed.shape[1]
    root = systems.shared(bucket.rows).rsqrt_()[:, None, :]
    if bucket.width < d:
        scaled, weight = _gather(systems, bucket, 0, bucket.width, root)
        solved = _cholesky_solve(scaled @ scaled.mT, weight)
        return (scaled.mT @ solved)[:, :, 0] * root[:, 0]
    gram = root.new_zeros(len(bucket.rows), d, d)
    right = root.new_zeros(len(bucket.rows), d, 1)
    width = max(1, numbers // (d * len(bucket.rows)))
    for first in range(0, bucket.width, width):
        last = min(first + width, bucket.width)
        scaled, weight = _gather(systems, bucket, first, last, root)
        gram.baddbmm_(scaled.mT, scaled)
        right.baddbmm_(scaled.mT, weight)
    return _cholesky_solve(gram, right)[:, :, 0] * root[:, 0]


def _cholesky_solve(gram: Tensor, right: Tensor) -> Tensor:
    """Solve (I + gram) x = right; NaN where that is not positive definite."""
    gram.diagonal(dim1=1, dim2=2).add_(1)
    lower, failed = torch.linalg.cholesky_ex(gram)
    solved = torch.cholesky_solve(right, lower)
    return torch.where((failed == 0)[:, None, None], solved, torch.nan)


def _gather(
    systems: Systems, bucket: Bucket, first: int, last: int, root: Tensor
) -> tuple[Tensor, Tensor]:
    """Return B = P^1/2 Y D^-1/2 and P^1/2 1 of pairs `first` to `last` - 1 of every row."""
    columns, pairs = gather_pairs(systems, bucket, first, last)
    weight = pairs.sqrt()[:, :, None]
    fixed = systems.fixed[columns].to(weight.dtype)
    return fixed.mul_(weight).mul_(root), weight


def gather_pairs(systems: Systems, bucket: Bucket, first: int, last: int) -> tuple[Tensor, Tensor]:
    """Return the columns and weights of pairs `first` to `last` - 1; weight 0 for none."""
    matrix = systems.matrix
    entry, there = entries_of(bucket, first, last)
    columns = matrix.indices[entry].long()
    pairs = systems.row_weight[bucket.rows][:, None] * systems.col_weight[columns]
    if matrix.weights is not None:
        pairs = pairs * matrix.weights[entry]
    return columns, pairs * there


def entries_of(bucket: Bucket, first: int, last: int) -> tuple[Tensor, Tensor]:
    """Return the entries `first` to `last` - 1 of every row, and which of them there are."""
    place = torch.arange(first, last, device=bucket.begin.device)
    there = place < bucket.length[:, None]
    return torch.where(there, bucket.begin[:, None] + place, bucket.begin[:, None]), there


def _dots(left: Tensor, right: Tensor) -> Tensor:
    """x_r.y_r by row."""
    return (left * right).sum(dim=1)


# In the eigenbasis of G, in place.
ROW_SOLVERS: dict[str, Callable[[Systems, Tensor, TorchReport, Any, Budget], None]] = {
    "exact": solve_exact,
    "cg": solve_iteratively,
    "spectral-cg": solve_iteratively,
}
