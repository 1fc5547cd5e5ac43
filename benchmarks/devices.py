"""A device of PyTorch: what it is, its limits, and the least time that they leave for an epoch."""

import gc
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.floors import EIGEN, ONE, best, epoch_work
from benchmarks.harness import Size
from safecf.als.solvers import Solver, Subspace
from safecf.backends import make_backend
from safecf.data.matrices.interactions import Interactions

GEMM, COPY = 8192, 2**32  # rows of the product; bytes


def backend_of(size: Size) -> Any:
    """Return the backend on the chosen device."""
    return make_backend("torch", size.threads, device=size.device)


def waiter(device: str) -> Callable[[], object]:
    """Return what waits until the device has done everything."""
    return torch.cuda.synchronize if device.startswith("cuda") else lambda: None


def forget(device: str) -> None:
    """Free the memory that nobody uses, and let the peak start anew."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak(device: str) -> int | None:
    """Return the peak of the allocated memory in bytes; None on the CPU."""
    return torch.cuda.max_memory_allocated() if device.startswith("cuda") else None


def description(device: str) -> dict[str, str]:
    """Return the name of a GPU with its memory, driver and CUDA."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1"
    driver = subprocess.getoutput(query)
    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    details = f"({memory:.0f} GiB, driver {driver}, CUDA {torch.version.cuda})"
    return {torch.cuda.get_device_name(): details}


@dataclass(frozen=True)
class DeviceLimits:
    """Products in flop/s in float32 and TF32, and a copy in bytes/s, read and written."""

    gemm: float
    tf32: float
    copy: float

    @classmethod
    def measure(cls, size: Size) -> "DeviceLimits":
        """Take the best of several runs of PyTorch's product and copy."""
        wait, rows = waiter(size.device), size.factors(GEMM)
        a, b = torch.rand(2, rows, rows, device=size.device)
        out, matmul, products = torch.empty_like(a), torch.backends.cuda.matmul, []
        before = matmul.allow_tf32
        for tf32 in (False, True):
            matmul.allow_tf32 = tf32
            products.append(2 * rows**3 / best(lambda: torch.mm(a, b, out=out), wait=wait))
        matmul.allow_tf32 = before
        source = torch.ones(max(2**20, round(COPY * size.scale) // 4), device=size.device)
        target = torch.zeros_like(source)
        return cls(*products, 8 * len(source) / best(lambda: target.copy_(source), wait=wait))


def eigh_seconds(factors: int, size: Size) -> float:
    """Return the seconds of PyTorch's eigendecomposition of a Gramian, in float64."""
    rows = torch.randn(2 * factors, factors, dtype=torch.float64, device=size.device)
    gram = rows.T @ rows
    return best(lambda: torch.linalg.eigh(gram), wait=waiter(size.device))


def device_floor(
    interactions: Interactions,
    factors: int,
    limits: DeviceLimits,
    eigh: float,
    solver: Solver,
    steps: tuple[float, float] = ONE,
) -> dict[str, float]:
    """Return the floor in seconds by part; the work is that of `epoch_work`.

    Products at the speed of TF32 where the solver's tolerance allows it, else of float32; two
    `eigh`; and each half-step by its flops in float32 or by its gathered bytes at the speed of a
    copy, whichever takes longer.
    """
    users, items = (np.diff(side.indptr) for side in (interactions.users, interactions.items))
    work, blocks = epoch_work(users, items, factors, solver, steps), isinstance(solver, Subspace)
    flops = work.products if blocks else work.products - EIGEN * factors**3
    found = work.seconds(limits, (limits.copy, limits.copy))
    found["products"] = flops / (limits.tf32 if solver.is_rough else limits.gemm)
    found["eigh"] = 0.0 if blocks else 2 * eigh
    found["total"] = sum(found[part] for part in ("products", "eigh", "users", "items"))
    return found
