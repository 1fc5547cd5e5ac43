"""Allocations of PyTorch, watched or refused, and small problems to run verbs on."""

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from safecf.als.optimizers import SGD, Adam
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from safecf.backends.torch import TorchBackend
from safecf.backends.torch.budget import Budget
from tests.problems import LOSSES, matrix_of, problem_of

D = 16


def backend_on(device, numbers=None, memory=None, fused=None):
    backend = TorchBackend(device=device)
    backend.budget, backend.fused = Budget(backend.device, numbers, memory), fused
    return backend


class Allocations(TorchDispatchMode):
    """The bytes of every tensor that an operation makes on a device; memory runs out as told."""

    def __init__(self, device, most=None, fails_at=None, error=None):
        super().__init__()
        self.device = torch.device(device).type
        self.sizes, self.most, self.fails_at = [], most, fails_at
        self.error = error or torch.cuda.OutOfMemoryError("once")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        known = {_memory(each) for each in tree_leaves((args, kwargs)) if _is_tensor(each)}
        for each in tree_leaves(found):
            here = _is_tensor(each) and each.device.type == self.device
            if here and _memory(each) not in known:
                self._count(each.untyped_storage().nbytes())
        return found

    def _count(self, size):
        self.sizes.append(size)
        if self.most is not None and size > self.most:
            raise torch.cuda.OutOfMemoryError("too large")
        if len(self.sizes) == self.fails_at:
            raise self.error


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


class Case(NamedTuple):
    """Data in NumPy, the same for every backend."""

    problem: object
    weights: np.ndarray
    users: np.ndarray
    items: np.ndarray


def make_case(loss="normalised", *, weighted=False, users=300, items=80):
    """Return rows without entries, short ones, and some longer than d."""
    rng = np.random.default_rng(0)
    longest = 3 * items // 4
    lengths = [0, 1, longest, longest, *rng.integers(0, items // 3, users - 4)]
    matrix = matrix_of(rng.permutation(lengths), items, rng, weighted=weighted)
    sides = (rng.normal(0, D**-0.5, (count, D)).astype(np.float32) for count in matrix.shape)
    problem = problem_of(matrix, LOSSES[loss](0.02))
    return Case(problem, np.clip(rng.normal(0.3, 0.4, users), 0, 1), *sides)


class Placed:
    """The case where a backend works."""

    def __init__(self, backend, case):
        self.case, self.problem = case, case.problem.place(backend)
        self.weights = backend.place_vector(case.weights)
        self.user_rows = self.problem.user_rows(self.weights)
        self.item_rows = self.problem.item_rows(self.weights)
        self.users, self.items = backend.place(case.users), backend.place(case.items)
        self.pair_weight = self.problem.pair_weight
        self.positions = backend.positions(self.problem.users)


def solved(solver):
    """Return a verb: the users, then the items, by this solver, with the losses."""

    def run(backend, placed):
        matrix, users, items = placed.user_rows.matrix, placed.users, placed.items
        fixed = backend.fix(items, backend.gram(items).mul_(0.02))
        first = backend.solve_rows(placed.user_rows, fixed, users, solver)
        losses = backend.losses(matrix, placed.pair_weight, users, fixed)
        gram = backend.gram(users, placed.weights, solver=solver).mul_(0.02)
        values = backend.rotate(users, items, gram, solver)
        fixed = backend.fix_rotated(users, values, solver)
        second = backend.solve_rows(placed.item_rows, fixed, items, solver)
        return [losses, first.changes, first.norms, second.changes, second.norms]

    return run


def by_blocks(backend, placed):
    """Two blocks of the users and of the items, with the losses."""
    matrix, users, items = placed.user_rows.matrix, placed.users, placed.items
    scores = backend.scores(matrix, users, items)
    found = []
    for block in (slice(0, 6), slice(6, D)):
        gram, rows = backend.gram(items, None, block).mul_(0.02), placed.user_rows
        found.append(backend.update_block(rows, block, items, gram, users, scores))
        gram, rows = backend.gram(users, placed.weights, block).mul_(0.02), placed.item_rows
        found.append(
            backend.update_block(rows, block, users, gram, items, scores, placed.positions)
        )
    gram, ridge = backend.gram(items).mul_(0.02), placed.user_rows.ridge
    losses = backend.scored_losses(matrix, placed.pair_weight, scores, users, gram, ridge)
    changes = [each for report in found for each in (report.changes, report.norms)]
    return [losses, users, items, *changes]


def descended(optimizer):
    """Return a verb: two gradient steps of the users."""

    def run(backend, placed):
        users, items, moments = placed.users, placed.items, None
        fixed = backend.fix(items, backend.gram(items).mul_(0.02))
        rows, solver = placed.user_rows, Gradient(0.1, optimizer)
        for epoch in (1, 2):
            users, moments, report = backend.descend(rows, fixed, users, moments, solver, epoch)
        return [users, *(moments or ()), report.changes, report.norms]

    return run


def searched(backend, placed):
    """Recommendations, and the ranks of what the users have."""
    case = placed.case
    users, index = case.problem.interactions.users, backend.index(case.items)
    found = *index.search(case.users, 10, users), index.ranks(case.users, users)
    return [torch.as_tensor(each) for each in found]


VERBS = {
    "exact": solved(Exact()),
    "cg": solved(CG(4, 1e-6)),
    "spectral-cg": solved(SpectralCG(1e-6, 3)),
    "bfloat16": solved(SpectralCG(1e-3)),
    "blocks": by_blocks,
    "sgd": descended(SGD()),
    "adam": descended(Adam()),
    "search": searched,
}


def run(verb, backend, case, watched=None):
    """Place a case, and run a verb."""
    return run_on(verb, backend, Placed(backend, case), watched)


def run_on(verb, backend, placed, watched=None):
    """Run a verb, watched or not; return what it finds, however the factors are rotated."""
    with watched or nullcontext():
        found = VERBS[verb](backend, placed)
    return [*found, placed.users @ placed.items.T, placed.items @ placed.items.T]
