"""The PyTorch backend's memory: temporaries are bounded, verbs survive when it runs out."""

import importlib
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safecf import SAFER2, SAFER2PP, CVaRMF
from tests.installed import DEVICES, KERNEL_DEVICE
from tests.problems import LOSSES, matrix_of

torch = pytest.importorskip("torch")

from safecf.backends.torch import budget as budgets  # noqa: E402 - after torch is known
from safecf.backends.torch.budget import Budget  # noqa: E402
from safecf.backends.torch.matrices import TorchMatrix  # noqa: E402
from safecf.backends.torch.streaming import StreamedMatrix  # noqa: E402
from tests.backends.torch_memory import (  # noqa: E402
    VERBS,
    Allocations,
    D,
    Placed,
    backend_on,
    make_case,
    run,
    run_on,
)

DATA = sp.csr_matrix(np.random.default_rng(0).random((60, 40)) < 0.3, dtype=np.float32)
REPORT = r"out of memory on [^;]*: interactions take .*; lower factors, .*device='cpu'"
SMALL = 1024  # numbers of a temporary; the users' factors are 4,800, and the items' 1,280
USERS, ITEMS = 300 * D * 4, 80 * D * 4  # bytes
FEW, TINY = {"users": 80, "items": 40}, 512  # for Triton's interpreter, which is slow
VERB = pytest.mark.parametrize("verb", VERBS)
PLACES = {"resident": None, "streamed": 0}
PLACE = pytest.mark.parametrize("memory", PLACES.values(), ids=PLACES)
# each verb in one of the two, and those in both whose temporaries differ
VERB_AND_PLACE = pytest.mark.parametrize(
    ("verb", "memory"), [*zip(VERBS, [None, 0] * 4, strict=True), ("blocks", 0), ("sgd", None)]
)


@pytest.fixture(params=DEVICES, scope="module")
def device(request):
    """Return the name of a device."""
    return request.param


@pytest.fixture
def make_backend(device):
    """Return what makes a backend on the device, given the size of temporaries and so on."""
    return partial(backend_on, device)


@pytest.fixture
def kernels(monkeypatch, device):
    """Return the module that works by kernels, where rows of more than 12 pairs are long."""
    pytest.importorskip("triton")
    if device != KERNEL_DEVICE:
        pytest.skip(f"Triton's kernels run on {KERNEL_DEVICE} here")
    module = importlib.import_module("safecf.backends.torch.fused")
    monkeypatch.setattr(module, "TASK", 5)
    monkeypatch.setattr(module.order_of, "__defaults__", (12, 5))
    return module


def assert_close(found, expected, verb=None):
    """Up to rounding, which is to 8 bits if the fixed side is in bfloat16."""
    close = 2e-3 if verb == "bfloat16" else 2e-5
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=10 * close, atol=close)


QUICK = ["exact", "cg", "blocks"]
SLOW = [
    pytest.param(verb, marks=pytest.mark.slow) for verb in VERBS if verb not in {*QUICK, "search"}
]


@VERB
def test_streaming_in_small_parts_changes_nothing(make_backend, verb):
    number = list(VERBS).index(verb)
    case = make_case(list(LOSSES)[number % len(LOSSES)], weighted=number % 2 == 0)
    expected = run(verb, make_backend(), case)
    assert_close(run(verb, make_backend(SMALL, memory=0), case), expected, verb)


@pytest.mark.slow
@PLACE
@pytest.mark.parametrize("verb", ["cg", "spectral-cg"])
def test_kernels_in_small_parts(make_backend, kernels, verb, memory):
    case = make_case(weighted=True, **FEW)
    expected = run(verb, make_backend(), case)
    assert_close(run(verb, make_backend(TINY, memory, kernels), case), expected)


def test_scores_of_resident_users_and_streamed_items(make_backend):
    case, backend = make_case(), make_backend(SMALL)
    placed = Placed(backend, case)
    assert isinstance(placed.problem.users, TorchMatrix)
    items = StreamedMatrix.place(case.problem.interactions.items, backend.device, 100)
    placed.item_rows = replace(placed.item_rows, matrix=items)
    assert_close(run_on("blocks", backend, placed), run("blocks", make_backend(), case))


@settings(max_examples=30)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=8), weighted=st.booleans())
@example(lengths=[9, 0, 1, 4, 9, 2], weighted=True)
def test_parts_are_the_matrix(device, lengths, weighted):
    matrix = matrix_of(lengths, 12, np.random.default_rng(0), weighted=weighted)
    placed = StreamedMatrix.place(matrix, torch.device(device), 5)
    for _ in range(2):
        indices, weights, row = [], [], 0
        for rows, first, part in placed.parts():
            assert (rows.start, first) == (row, len(indices))
            assert part.nnz <= max(5, *lengths)
            np.testing.assert_array_equal(part.indptr.cpu(), part.offsets)
            np.testing.assert_array_equal(np.diff(part.offsets), lengths[rows])
            indices.extend(part.indices.tolist())
            weights.extend([] if part.weights is None else part.weights.tolist())
            row = rows.stop
        assert row == len(lengths)
        assert indices == matrix.indices.tolist()
        assert weights == ([] if matrix.weights is None else matrix.weights.tolist())


@VERB_AND_PLACE
def test_temporaries_are_bounded(make_backend, device, verb, memory):
    """What is larger is the fixed side, the next factors, moments, or the scores."""
    case, backend = make_case(weighted=True), make_backend(SMALL, memory)
    placed = Placed(backend, case)
    watched = Allocations(device)
    run_on(verb, backend, placed, watched)
    wanted = {
        "bfloat16": [ITEMS, USERS // 2],
        "blocks": [] if memory == 0 else [4 * case.problem.interactions.nnz],
        "sgd": [ITEMS, *[USERS] * 2],
        "adam": [ITEMS, *[USERS] * 6],
    }
    large = sorted(size for size in watched.sizes if size > 4 * SMALL)
    assert large == sorted(wanted.get(verb, [ITEMS]))


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["cg", "bfloat16"])
def test_temporaries_of_kernels_are_bounded(make_backend, device, kernels, verb):
    case, backend = make_case(weighted=True, **FEW), make_backend(TINY, fused=kernels)
    placed = Placed(backend, case)
    run_on(verb, backend, placed)  # plans of the work, whose tasks are tiny here
    watched = Allocations(device)
    run_on(verb, backend, placed, watched)
    large = [size for size in watched.sizes if size > 4 * TINY]
    users, items = case.users.nbytes, case.items.nbytes
    assert large == ([items, users // 2] if verb == "bfloat16" else [items])


@VERB_AND_PLACE
def test_work_is_cut_until_it_fits(monkeypatch, make_backend, device, verb, memory):
    monkeypatch.setattr(budgets, "FLOOR", 64)
    case, backend = make_case(), make_backend(2**20, memory)
    expected, placed = run(verb, make_backend(), case), Placed(backend, case)
    most = 6 * USERS  # less than all gathered factors, and than all scores
    watched = Allocations(device, most=most)
    found = run_on(verb, backend, placed, watched)
    assert_close(found, expected, verb)
    assert max(watched.sizes) > most
    assert backend.budget.numbers < 2**20


@pytest.mark.parametrize("verb", [*QUICK, *SLOW])
def test_memory_may_run_out_anywhere(monkeypatch, make_backend, device, verb):
    """A verb that works in place does no row twice, and leaves none out."""
    monkeypatch.setattr(budgets, "FLOOR", 64)
    case = make_case()
    expected, backend = run(verb, make_backend(), case), make_backend(4 * SMALL)
    watched = Allocations(device)
    run_on(verb, backend, Placed(backend, case), watched)
    for number in np.linspace(1, len(watched.sizes), 4).astype(int):
        backend = make_backend(4 * SMALL)
        placed = Placed(backend, case)
        found = run_on(verb, backend, placed, Allocations(device, fails_at=number))
        assert_close(found, expected, verb)


def fitted(kind, device):
    model = kind(8, iterations=2, random_state=0, backend="torch", device=device)
    return model.fit(DATA, show_progress=False)


def running_out(device, work, places=10):
    """Run the work again and again, while one allocation fails: yield what it finds, or reports."""
    with Allocations(device) as watched:
        work()
    for number in np.linspace(1, len(watched.sizes), places).astype(int):
        try:
            with Allocations(device, fails_at=number):
                found = work()
        except MemoryError as problem:
            found = str(problem)
        yield found


@pytest.fixture(params=[64, pytest.param(budgets.FLOOR, marks=pytest.mark.slow)])
def floor(monkeypatch, request):
    """Let work be cut when memory runs out, or not at all."""
    monkeypatch.setattr(budgets, "NUMBERS", budgets.FLOOR)
    monkeypatch.setattr(budgets, "FLOOR", request.param)


@pytest.mark.usefixtures("floor")
@pytest.mark.parametrize("kind", [SAFER2, SAFER2PP, CVaRMF])
def test_a_fit_without_memory_fits_or_says_what_to_try(device, kind):
    """Wherever an allocation fails: inside of a verb, or in arithmetic on vectors."""
    expected, reports = fitted(kind, device).item_factors, 0
    for found in running_out(device, lambda: fitted(kind, device)):
        if isinstance(found, str):
            assert re.match(REPORT, found)
            reports += 1
        else:
            np.testing.assert_allclose(found.item_factors, expected, rtol=1e-3, atol=1e-4)
    assert reports


@pytest.mark.usefixtures("floor")
@pytest.mark.parametrize("verb", ["fold_in", "recommend", "similar_items"])
def test_answers_without_memory_are_right_or_say_what_to_try(device, verb):
    model = fitted(SAFER2, device)

    def ask():
        model.derived.clear()
        if verb == "fold_in":
            return [model.fold_in(DATA)]
        if verb == "recommend":
            return model.recommend(np.arange(60), DATA, 5, filter_items=[1, 2])
        return model.similar_items(np.arange(40), 5)

    expected = ask()
    for found in running_out(device, ask):
        if isinstance(found, str):
            assert re.match(REPORT, found)
        else:
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


MESSAGES = [
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
    "CUDA error: out of memory",
    "Triton Error [CUDA]: out of memory",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9000 bytes",
]


def test_memory_that_runs_out_in_a_library(make_backend, device):
    case = make_case()
    expected = run("exact", make_backend(), case)
    for message in MESSAGES:
        backend = make_backend(SMALL * 2**10)
        placed = Placed(backend, case)
        watched = Allocations(device, fails_at=9, error=RuntimeError(message))
        assert_close(run_on("exact", backend, placed, watched), expected)
        assert backend.budget.numbers == SMALL * 2**9


def test_other_errors_are_not_about_memory(make_backend, device):
    backend = make_backend()
    before = backend.budget.numbers
    watched = Allocations(device, fails_at=9, error=RuntimeError("illegal"))
    with pytest.raises(RuntimeError, match="illegal"), backend.guarded():
        run("exact", backend, make_case(), watched)
    assert backend.budget.numbers == before


def test_the_error_says_what_is_in_memory(make_backend, device):
    case, backend = make_case(), make_backend(2 * budgets.FLOOR, memory=10**9)
    placed = Placed(backend, case)
    message = (
        rf"out of memory on {backend.device}, which has 1.0 GB of it, 1.0 GB free: interactions "
        r"take 0.0 GB, factors 0.0 GB.*lower factors.*device='cpu'"
    )
    with pytest.raises(MemoryError, match=message):
        run_on("cg", backend, placed, Allocations(device, most=2000))
    assert backend.budget.numbers == budgets.FLOOR


def test_interactions_that_do_not_fit_are_streamed(make_backend):
    matrix = make_case().problem.interactions.users
    factors, size = np.zeros((100, 8), np.float32), 4 * matrix.nnz + 8 * 301
    enough = size + 3 * factors.nbytes + 4 * budgets.TEMPORARIES * SMALL
    for memory, kind in ((enough, TorchMatrix), (enough - 1, StreamedMatrix)):
        backend = make_backend(SMALL, memory)
        kept = backend.place(factors)
        placed = backend.place_matrix(matrix)
        assert isinstance(placed, kind)
        assert backend.budget.held("factors") == kept.nbytes
        assert backend.budget.held("interactions") == placed.nbytes
        del placed, kept
        assert backend.budget.held("interactions") == backend.budget.held("factors") == 0


def test_a_row_is_never_cut():
    seen = []
    Budget(torch.device("cpu"), numbers=10).each([0, 30, 31, 34, 40], 2, seen.append)
    assert seen == [slice(0, 1), slice(1, 3), slice(3, 4)]
