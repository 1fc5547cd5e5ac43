"""The PyTorch backend as users meet it: devices, files, ranks above 1,024, what is missing."""

import importlib.util
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import EASE, IALS, SAFER2, SAFER2PP, CVaRMF, ParameterWarning, free_memory
from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends import best_device, find_backend, make_backend
from safecf.data.matrices.interactions import Interactions
from safecf.models.callbacks import Watching
from safecf.models.training import _check_memory
from tests.agreement.placed import TWIN, fix, gram, solve, variants_of
from tests.installed import DEVICES, GPU, KERNEL_DEVICE
from tests.problems import LOSSES, matrix_of, problem_of
from tests.reference import rotation_free

torch = pytest.importorskip(
    "torch", reason="torch is not installed: no test of its backend is run, here or elsewhere"
)

TorchBackend = find_backend("torch")
DATA = sp.csr_matrix(np.random.default_rng(0).random((40, 30)) < 0.3, dtype=np.float32)
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


def trained(kind=SAFER2, **options):
    given = {"iterations": 3, "random_state": 0} | options
    return kind(8, **given).fit(DATA, show_progress=False)


def agree(one, other):
    ours, theirs = (rotation_free(*model.both_factors()) for model in (one, other))
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [SAFER2, IALS, SAFER2PP])
def test_models_agree_with_the_twin(kind, device):
    options = {} if kind is SAFER2PP else {"solver": "exact"}
    model = trained(kind, backend="torch", device=device, **options)
    agree(model, trained(kind, backend="numpy", **options))
    twin = pickle.loads(pickle.dumps(model)).to("cpu")
    assert (twin.backend, twin.device) == ("auto", "cpu")
    ids, scores = model.recommend(np.arange(40), DATA)
    expected = twin.recommend(np.arange(40), DATA)
    np.testing.assert_allclose(scores, expected[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_allclose(model.fold_in(DATA), twin.fold_in(DATA), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_goes_on_with_the_same_bits(tmp_path, device):
    options = {"backend": "torch", "device": device, "random_state": 0}
    whole = SAFER2(8, iterations=4, **options).fit(DATA, show_progress=False)
    kept = tmp_path / "run"
    SAFER2(8, iterations=2, **options).fit(DATA, show_progress=False, checkpoint=kept)
    rest = SAFER2(8, iterations=4, **options).fit(DATA, show_progress=False, resume=kept)
    np.testing.assert_array_equal(rest.item_factors, whole.item_factors)
    np.testing.assert_array_equal(rest.user_factors, whole.user_factors)


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_goes_on_elsewhere(tmp_path, device):
    options, kept = {"tolerance": 1e-6, "random_state": 0}, tmp_path / "run"
    there = {"backend": "torch", "device": device, **options}
    whole = SAFER2(8, iterations=4, **there).fit(DATA, show_progress=False)
    SAFER2(8, iterations=2, **there).fit(DATA, show_progress=False, checkpoint=kept)
    agree(SAFER2(8, iterations=4, **options).fit(DATA, show_progress=False, resume=kept), whole)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [IALS, SAFER2])
@pytest.mark.filterwarnings("ignore::safecf.errors.ConvergenceWarning")
def test_factors_that_vanish_under_large_ridges_are_no_error(kind, device):
    for ridge in (10.0, 100.0):
        model = trained(kind, iterations=12, regularization=ridge, device=device, backend="torch")
        assert np.isfinite(model.item_factors).all()


@pytest.fixture
def default_dtype():
    """Make new tensors float64, as users may have it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", [IALS, CVaRMF])
def test_the_default_type_of_tensors_does_not_matter(default_dtype, kind):
    options = {"solver": "exact"} if kind is IALS else {}
    agree(trained(kind, backend="torch", device="cpu", **options), trained(kind, **options))


@GPU
def test_products_are_what_they_have_to_be_whatever_the_process_has_set():
    """TF32 is for spectral CG alone, and what was set comes back."""
    from safecf.backends.torch.budget import at_work  # noqa: PLC0415 - after torch is known

    left, right = torch.rand(2, 300, 300, device="cuda")
    exact = left.double() @ right.double()
    budget = TorchBackend(device="cuda").budget
    errors = []
    for setting in ("highest", "high"):
        torch.set_float32_matmul_precision(setting)
        for tf32 in (False, True):
            with at_work(budget.device, tf32=tf32):
                found = budget.run(lambda: left @ right)  # inside of it, nothing is set again
            errors.append(float((found - exact).abs().max() / exact.max()))
        assert torch.get_float32_matmul_precision() == setting
    torch.set_float32_matmul_precision("highest")
    assert max(errors[0], errors[2]) < 1e-5 < min(errors[1], errors[3])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_host_holds_what_does_not_stay_on_a_gpu(monkeypatch, device):
    """A GPU that is not there, of which the host holds the factors and vectors alone."""
    both_sides, vectors = 4 * 1000 * 70, 160 * 70
    monkeypatch.setattr(free_memory, "ALWAYS_FREE", 0)
    monkeypatch.setattr(free_memory, "available_bytes", lambda: both_sides + vectors)
    backend = TorchBackend(device="cpu")
    backend.device = torch.device(device)
    model, data = SAFER2(1000), Interactions.from_csr(DATA)
    if device == "cuda":
        _check_memory(model, data, backend)
        monkeypatch.setattr(free_memory, "available_bytes", lambda: both_sides)
    with pytest.raises(MemoryError, match=r"training 1000 factors of 40 users.*; lower factors"):
        _check_memory(model, data, backend)


def test_what_was_placed_is_placed_once(monkeypatch):
    """Batches of an evaluation, or of recommendations, share the factors on the device."""
    placed = []
    kind = find_backend("torch")
    place = kind.place

    def counted(self, factors):
        placed.append(len(factors))
        return place(self, factors)

    monkeypatch.setattr(kind, "place", counted)
    model = trained(backend="torch", device="cpu")
    placed.clear()
    for rows in (slice(0, 10), slice(10, 25), slice(25, 40)):
        model.recommend(np.arange(40)[rows], DATA[rows], recalculate_user=True)
    assert placed == [30, 30]  # the items: to fold in, and to search
    model.to("cpu")
    assert model.recommend(0, DATA[0])[0].size == 10


@NO_GPU
@pytest.mark.parametrize("device", ["cuda", "cuda:9"])
def test_a_gpu_that_is_not_there(device):
    for backend in ("auto", "torch"):
        with pytest.raises(ValueError, match=rf"device='{device}': PyTorch .*; try device='cpu'"):
            trained(backend=backend, device=device)
    model = trained()
    with pytest.raises(ValueError, match=rf"device='{device}': PyTorch .*; try device='cpu'"):
        model.to(device)
    assert (model.backend, model.device) == ("auto", "auto")


def test_a_gpu_beyond_the_last(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"device='cuda:2': PyTorch finds 2 of them"):
        make_backend("torch", device="cuda:2")
    assert best_device() == "cuda"


@pytest.mark.parametrize(("name", "number"), [("auto", 1), ("cuda", 1), ("cuda:0", 0)])
def test_a_gpu_stays_the_same_when_another_one_becomes_the_current_one(monkeypatch, name, number):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    backend = make_backend("torch", device=name)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert backend.device == backend.budget.device == torch.device("cuda", number)


def test_devices_of_other_backends():
    for backend in ("cpu", "numpy"):
        with pytest.raises(ValueError, match=f"backend='{backend}' works on the CPU; try backend="):
            trained(backend=backend, device="cuda")
    with pytest.raises(ValueError, match="EASE works on the CPU alone; try device='auto'"):
        EASE().to("cuda")
    for device in ("gpu", 3, None, "cuda:"):
        with pytest.raises(ValueError, match=r"unknown device .*; try device='cuda' for a GPU"):
            SAFER2().to(device)
    assert EASE().to("auto").fit(DATA, show_progress=False).is_fitted


def test_auto_is_what_is_here():
    device, named = ("cuda", "cuda:0") if torch.cuda.is_available() else ("cpu", "cpu")
    assert SAFER2().to("auto").device == best_device() == device
    assert repr(make_backend("torch")) == f"torch-{named}"
    assert make_backend("auto").name == "cpu"  # PyTorch is used only if it is asked for


@NO_GPU
def test_a_model_of_a_gpu_works_without_one(tmp_path):
    model = trained()
    model.backend, model.device = "torch", "cuda"
    model.save(tmp_path / "model")
    with pytest.warns(ParameterWarning, match=r"works on the CPU: it was saved .*device='cuda'"):
        loaded = safecf.load(tmp_path / "model")
    assert (loaded.backend, loaded.device) == ("auto", "cpu")
    np.testing.assert_array_equal(
        loaded.recommend(0, DATA[0])[0], trained().recommend(0, DATA[0])[0]
    )
    loaded.save(tmp_path / "model")
    safecf.load(tmp_path / "model")  # warns no more


def test_a_file_keeps_backend_and_device(tmp_path):
    trained(backend="torch", device="cpu").save(tmp_path / "model")
    loaded = safecf.load(tmp_path / "model")
    assert (loaded.backend, loaded.device) == ("torch", "cpu")


def test_without_pytorch(monkeypatch, tmp_path):
    trained(backend="torch", device="cpu").save(tmp_path / "model")
    for name in [each for each in sys.modules if each.startswith("safecf.backends.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("safecf.backends.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs torch, .*; try pip install 'safecf\[torch\]'"):
        trained(backend="torch")
    with pytest.raises(ImportError, match=r"try pip install 'safecf\[torch\]'"):
        trained(device="cuda")
    assert SAFER2().to("auto").device == "cpu"
    with pytest.warns(
        ParameterWarning, match="works on the CPU: it was saved with backend='torch'"
    ):
        loaded = safecf.load(tmp_path / "model")
    assert loaded.recommend(0, DATA[0])[0].size == 10


@pytest.mark.parametrize("solver", [Exact(), CG(3, 1e-6), SpectralCG(1e-6, 3)], ids=str)
def test_more_factors_than_1024(solver):
    """Wider than a block of threads, and than other libraries' kernels."""
    rng = np.random.default_rng(0)
    users = matrix_of([0, 1, 5, 30], 40, rng)
    problem = problem_of(users, LOSSES["normalised"](0.02))
    y, x = (rng.normal(0, 0.03, (size, 1100)) for size in (40, 4))
    shared, rows = 0.02 * gram(TWIN, y), problem.unit_user_rows
    expected, _ = solve(TWIN, rows, fix(TWIN, y, shared), x, solver)
    for backend in variants_of(find_backend("torch")):
        found, _ = solve(backend, rows, fix(backend, y, shared), x, solver)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_kernels_of_more_factors_than_1024():
    from safecf.backends.torch import fused  # noqa: PLC0415 - it imports triton
    from safecf.backends.torch.systems import Fixed  # noqa: PLC0415

    rng = np.random.default_rng(0)
    matrix = matrix_of([0, 2, 9], 12, rng)
    values = 0.1 * rng.standard_normal((12, 1100))
    fixed = torch.tensor(values, dtype=torch.float32, device=KERNEL_DEVICE)
    start = rng.standard_normal((3, 1100)).astype(np.float32)
    side = Fixed(fixed, torch.linspace(0, 2, 1100, device=KERNEL_DEVICE), None)
    found = []
    for kernels in (None, fused):
        backend = find_backend("torch")(1, KERNEL_DEVICE)
        backend.fused = kernels
        rows = problem_of(matrix, LOSSES["normalised"](0.02)).unit_user_rows
        rows = rows.part(backend.place_matrix(matrix), 0, 3)
        x = backend.place(start)
        backend.solve_rows(rows, side, x, SpectralCG(1e-5))
        found.append([x, backend.losses(rows.matrix, rows.row_weight, x, side)])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)


def test_what_the_doctor_says(monkeypatch):
    from safecf.backends.torch import devices  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert f"torch {torch.__version__}, no GPU: PyTorch" in devices.described()
    assert devices.described().endswith("is built without CUDA; install a build with it")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert devices.described().endswith("built for CUDA 13.0, finds no GPU; look at nvidia-smi")

    class Card:
        name, total_memory = "NVIDIA H200", 150e9

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: Card)
    assert "GPU: NVIDIA H200, 150 GB, CUDA 13.0, " in devices.described()
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert devices.described().endswith(
        "without triton, which makes it faster; try pip install triton"
    )


def test_callbacks_that_watch_fetch_nothing(monkeypatch):
    kind, sizes, seen = find_backend("torch"), [], []
    fetch = kind.fetch

    def counted(self, factors):
        sizes.append(tuple(factors.shape))
        return fetch(self, factors)

    monkeypatch.setattr(kind, "fetch", counted)
    model = SAFER2(8, iterations=3, random_state=0, backend="torch", device="cpu")
    model.fit(DATA, show_progress=False, callback=Watching(lambda *told: seen.append(told[0])))
    assert seen == [0, 1, 2]
    assert sizes.count((30, 8)) == 1  # the items, once
    assert sizes.count((40, 8)) == 1  # the users, when they are folded in
    np.testing.assert_array_equal(model.user_factors, model.fold_in(DATA))
