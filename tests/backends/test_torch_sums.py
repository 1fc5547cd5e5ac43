"""The PyTorch backend's passes over losses: the tail, and what a pass costs on a GPU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.als.kernels import KERNELS
from safecf.als.population import NUMPY, Smoothing

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 - after torch is known

from safecf.backends.torch.sums import TorchSums  # noqa: E402

PASSES = TorchSums(torch.device("cpu"))
# Every operation is a kernel that the host launches, and takes longer to launch than to run.
MOST = 14
FREE = {"select.int", "slice.Tensor", "unsqueeze", "unbind.int", "new_empty", "empty_like"}


class Operations(TorchDispatchMode):
    """The operations that launch something."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func).removeprefix("aten.").removesuffix(".default")
        if name not in FREE:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def population(users, *, counted):
    rng = np.random.default_rng([users, counted])
    losses = rng.beta(4, 3, users).round(2)  # with ties
    return losses, rng.uniform(0.2, 3, users) if counted else None


def placed(losses, counts):
    return PASSES.vector(losses), None if counts is None else PASSES.vector(counts)


@given(
    st.sampled_from([1, 2, 3, 100, 1001]),
    st.sampled_from([1e-4, 0.1, 0.29, 0.3, 0.5, 1 - 1e-12, 1.0]),
    st.booleans(),
)
def test_the_tail_is_that_of_numpy(users, tail, counted):
    losses, counts = population(users, counted=counted)
    found = PASSES.tail(*placed(losses, counts), tail)
    expected = NUMPY.tail(losses, counts, tail)
    assert found.value_at_risk == expected.value_at_risk
    assert found.mean == pytest.approx(expected.mean, rel=1e-9)


@pytest.mark.parametrize("tail", [0.1, 0.3, 1.0])
def test_the_tail_has_the_same_bits_however_cumsum_rounds(monkeypatch, tail):
    """As it may on CUDA, and where tails end exactly with a user."""
    rng, cumsum = np.random.default_rng(0), torch.Tensor.cumsum

    def rounding(self, dim):
        return cumsum(self, dim) * (1 + 1e-13 * torch.as_tensor(rng.normal(size=len(self))))

    losses, counts = placed(rng.permutation(100) / 7, np.full(100, 0.1))
    expected = PASSES.tail(losses, counts, tail)
    monkeypatch.setattr(torch.Tensor, "cumsum", rounding)
    assert {PASSES.tail(losses, counts, tail) for _ in range(20)} == {expected}


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_a_pass_is_few_operations_and_one_transfer(monkeypatch, kernel, counted):
    own, smoothing = placed(*population(100, counted=counted)), Smoothing(0.3, kernel, 0.15)
    transfers, tolist = [], torch.Tensor.tolist
    monkeypatch.setattr(
        torch.Tensor, "tolist", lambda self: transfers.append(self.shape) or tolist(self)
    )
    for name, more in (("totals", ()), ("sums", (smoothing, 0.4)), ("tail", (0.3,))):
        transfers.clear()
        with Operations() as watched:
            getattr(PASSES, name)(*own, *more)
        # `tolist` on the CPU is no operation; an `item` would be
        assert "_local_scalar_dense" not in watched.names
        assert len(transfers) == 1
        assert len(watched.names) <= MOST
