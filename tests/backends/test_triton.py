"""The Triton kernels, on a GPU or by Triton's interpreter, against plain PyTorch."""

import importlib
from functools import partial

import numpy as np
import pytest

from safecf.als.rows import Rows
from safecf.als.solvers import CG, SpectralCG
from tests.installed import KERNEL_DEVICE
from tests.problems import matrix_of

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

LONG, TASK = 12, 5  # so that small rows are long ones
slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.fixture
def fused(monkeypatch):
    """Return the module that works by kernels."""
    module = importlib.import_module("safecf.backends.torch.fused")
    monkeypatch.setattr(module, "TASK", TASK)
    monkeypatch.setattr(module.order_of, "__defaults__", (LONG, TASK))
    return module


def backends(fused):
    from safecf.backends.torch import TorchBackend  # noqa: PLC0415 - after torch is known

    plain, by_kernels = (TorchBackend(device=KERNEL_DEVICE) for _ in range(2))
    plain.fused, by_kernels.fused = None, fused
    return plain, by_kernels


def problem(lengths, columns, factors, weighted, dtype):
    rng = np.random.default_rng(0)
    matrix = matrix_of(lengths, columns, rng, weighted=weighted)
    sizes = len(lengths), columns, len(lengths), len(lengths)
    vectors = [rng.uniform(0.2, 1, size) for size in sizes]
    fixed = (0.4 * rng.standard_normal((columns, factors))).astype(np.float32)
    start = rng.standard_normal((len(lengths), factors)).astype(np.float32)
    return matrix, vectors, torch.tensor(fixed, dtype=dtype, device=KERNEL_DEVICE), start


@pytest.mark.parametrize(
    ("solver", "factors", "weighted", "dtype", "scale"),
    [
        slow(SpectralCG(1e-6), 5, False, torch.float32, 1),
        slow(SpectralCG(1e-6), 5, False, torch.float32, 1e-20),
        slow(SpectralCG(1e-6), 8, True, torch.bfloat16, -1),
        slow(CG(60, 1e-6), 3, True, torch.float32, 1),
        (SpectralCG(1e-6, 2), 5, True, torch.bfloat16, 1),
    ],
)
def test_kernels_are_plain_pytorch(fused, solver, factors, weighted, dtype, scale):
    """Rows without pairs, short ones, and long ones of whole and of broken tasks."""
    from safecf.backends.torch.systems import Fixed  # noqa: PLC0415 - after torch is known

    matrix, vectors, fixed, start = problem([0, 1, 7, 12, 13, 15, 21], 24, factors, weighted, dtype)
    side = Fixed(fixed, torch.linspace(0, 2, factors, device=KERNEL_DEVICE), None)
    found = []
    for backend in backends(fused):
        rows = Rows(backend.place_matrix(matrix), *vectors)
        x = backend.place(np.float32(scale) * start)
        report = backend.solve_rows(rows, side, x, solver)
        losses = backend.losses(rows.matrix, vectors[0], x, side)
        found.append([x, report.changes, report.norms, losses])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


def test_a_matrix_without_entries(fused):
    from safecf.backends.torch.systems import Fixed  # noqa: PLC0415 - after torch is known

    matrix = matrix_of([0, 0, 0], 5, np.random.default_rng(0))
    for backend in backends(fused):
        rows = Rows(backend.place_matrix(matrix), np.ones(3), np.ones(5), np.ones(3), np.ones(3))
        x = backend.place(np.ones((3, 4), dtype=np.float32))
        ones = torch.ones(5, 4, device=KERNEL_DEVICE)
        side = Fixed(ones, ones[0], None)
        assert backend.solve_rows(rows, side, x, SpectralCG()).largest() == 0
        assert not x.any()


def test_kernels_are_tried_out(fused, monkeypatch):
    device = torch.device(KERNEL_DEVICE)
    fused.try_out(device)
    monkeypatch.setattr(fused.kernels, "widen", Launches())
    with pytest.raises(RuntimeError, match="did not write"):
        fused.try_out(device)


@pytest.fixture
def backends_module():
    """Forget what was found out about devices, before and after."""
    from safecf.backends.torch import backend  # noqa: PLC0415 - after torch is known

    backend._fused.cache_clear()
    yield backend
    backend._fused.cache_clear()


@pytest.mark.parametrize(
    "problem",
    [RuntimeError("Failed to find C compiler"), ValueError("type bf16 not supported"), OSError(8)],
    ids=repr,
)
def test_plain_pytorch_is_used_where_kernels_do_not_compile(
    fused, backends_module, monkeypatch, problem
):
    """Tried out once per device and process, however many backends there are."""
    tried = []

    def try_out(device):
        tried.append(device)
        raise problem

    monkeypatch.setattr(fused, "try_out", try_out)
    device = torch.device("cuda", 0)
    with pytest.warns(UserWarning, match=r"on cuda:0 \(.*plain PyTorch .*install a C compiler"):
        assert backends_module._fused(device) is None
    assert backends_module._fused(device) is None
    assert tried == [device]


def test_memory_that_runs_out_says_nothing_about_triton(fused, backends_module, monkeypatch):
    device = torch.device("cuda", 0)

    def try_out(device):
        raise torch.cuda.OutOfMemoryError("once")

    with monkeypatch.context() as patched:
        patched.setattr(fused, "try_out", try_out)
        with pytest.raises(torch.cuda.OutOfMemoryError, match="once"):
            backends_module._fused(device)
    monkeypatch.setattr(fused, "try_out", lambda device: None)
    assert backends_module._fused(device) is fused


class Launches:
    """A kernel that is not run; it notes its warps."""

    def __init__(self):
        self.warps = []

    def __getitem__(self, grid):
        return lambda *given, num_warps=4, **sizes: self.warps.append(num_warps)


@pytest.mark.parametrize("factors", [1, 512, 513, 2**13, 2**13 + 1, 2**14, 2**16])
def test_a_block_of_cuda_has_no_more_than_32_warps(fused, monkeypatch, factors):
    from safecf.backends.torch.systems import Fixed, Systems  # noqa: PLC0415 - after torch is known

    launches = Launches()
    monkeypatch.setattr(fused.kernels, "solve_rows", launches)
    monkeypatch.setattr(fused.kernels, "row_losses", launches)
    _, backend = backends(fused)
    ones = np.ones(2)
    rows = Rows(backend.place_matrix(matrix_of([1, 2], 2, np.random.default_rng(0))), *[ones] * 4)
    x = backend.zeros(2, factors)
    side = Fixed(backend.zeros(2, factors), backend.zeros(1, factors)[0], None)
    systems, report = Systems.of(rows, side, rounded=False), fused.TorchReport.of(x)
    fused.solve_iteratively(systems, x, report, SpectralCG(), backend.budget)
    backend.losses(rows.matrix, ones, x, side)
    solve, losses = launches.warps
    assert 1 <= solve <= losses <= 32
    assert losses == 2 * solve
    assert factors <= 512 * solve or losses == 32
