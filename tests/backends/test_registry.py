"""The register of backends: capabilities are checked before any work."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import SAFER2, SAFER2PP, CVaRMF
from safecf.als.capabilities import Blocks, Gradients, HalfSteps, Search
from safecf.als.solvers import Exact
from safecf.backends import BACKENDS, find_backend, make_backend, thread_count
from safecf.backends.host import HostBackend
from safecf.backends.numpy import NumpyBackend
from tests.helpers import refused
from tests.installed import backend_kinds

DATA = sp.csr_matrix(np.random.default_rng(0).random((20, 10)) < 0.4, dtype=np.float32)


class Bare:
    """Half-steps and search, and nothing else."""

    name = "bare"
    row_solvers = ("exact",)
    same_bits = True

    def __init__(self, num_threads=0):
        twin = NumpyBackend(num_threads)
        verbs = {each for each in dir(HalfSteps) if not each.startswith("_")} | {"index"}
        for verb in verbs - {"name", "row_solvers", "same_bits"}:
            setattr(self, verb, getattr(twin, verb))


@pytest.fixture
def bare(monkeypatch):
    monkeypatch.setitem(BACKENDS, "bare", Bare)


def test_every_registered_backend_trains_and_searches():
    for name in backend_kinds():
        backend = make_backend(name, 1, {HalfSteps: "a test", Search: "a test"})
        assert backend.name == name
        assert isinstance(backend, find_backend(name))


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("model", "needed"),
    [(SAFER2PP, "updates of coordinate blocks"), (CVaRMF, "gradient steps")],
)
def test_a_backend_without_a_capability_is_refused_before_any_work(model, needed):
    fitted = model(4, backend="bare")
    wanted = (
        f"{model.__name__} needs {needed}, which backend 'bare' does not have; try backend='cpu'"
    )
    with pytest.raises(NotImplementedError, match=wanted):
        fitted.fit(DATA, show_progress=False)
    assert not fitted.is_fitted


@pytest.mark.usefixtures("bare")
def test_a_backend_without_a_row_solver_is_refused_before_any_work():
    with pytest.raises(
        NotImplementedError,
        match=r"SAFER2 needs the row solver 'spectral-cg', which backend 'bare' does not have; try",
    ):
        SAFER2(4, backend="bare").fit(DATA, show_progress=False)


@pytest.mark.usefixtures("bare")
def test_half_steps_and_search_are_enough_for_a_model():
    options = {"iterations": 3, "solver": "exact", "random_state": 0}
    bare = SAFER2(4, backend="bare", **options).fit(DATA, show_progress=False)
    twin = SAFER2(4, backend="numpy", **options).fit(DATA, show_progress=False)
    np.testing.assert_array_equal(bare.user_factors, twin.user_factors)
    np.testing.assert_array_equal(bare.recommend(3, DATA[3])[0], twin.recommend(3, DATA[3])[0])


def test_capabilities_are_told_apart():
    assert not isinstance(Bare(), Blocks | Gradients)
    assert not isinstance(HostBackend(), Gradients)
    assert isinstance(Bare(), HalfSteps)
    assert Exact.name in Bare.row_solvers


@pytest.mark.usefixtures("bare")
def test_fold_in_needs_the_exact_solver(monkeypatch):
    monkeypatch.setattr(Bare, "row_solvers", ("spectral-cg",))
    with pytest.raises(NotImplementedError, match="fold-in of SAFER2 needs the row solver 'exact'"):
        SAFER2(4, backend="bare").fit(DATA, show_progress=False)


def test_remedies_are_backends_that_can_be_made_here(monkeypatch):
    monkeypatch.setitem(BACKENDS, "bare", Bare)
    monkeypatch.setitem(BACKENDS, "elsewhere", "safecf_elsewhere:Backend")
    with pytest.raises(NotImplementedError, match=r"try backend='cpu' or 'numpy'( or 'torch')?$"):
        make_backend("bare", 1, {Blocks: "a test"})
    with pytest.raises(ImportError, match="'elsewhere' needs safecf_elsewhere, which is not inst"):
        make_backend("elsewhere")


def test_entries_that_name_no_backend(monkeypatch):
    for line in ("", "safecf.backends.numpy", ":NumpyBackend", "safecf.backends:Nothing", "os:sep"):
        monkeypatch.setitem(BACKENDS, "wrong", line)
        with refused(ImportError, "backend 'wrong' is registered as", '"module:name"'):
            make_backend("wrong")
    for entry in (3, None, NumpyBackend()):
        monkeypatch.setitem(BACKENDS, "wrong", entry)
        with pytest.raises(TypeError, match=r"backend 'wrong' is registered as .*; register a cl"):
            make_backend("wrong")


def test_a_backend_that_is_changed_after_fit_is_checked_again(monkeypatch):
    model = SAFER2(4, random_state=0).fit(DATA, show_progress=False)
    monkeypatch.setitem(BACKENDS, "bare", Bare)
    monkeypatch.setattr(Bare, "row_solvers", ("spectral-cg",))
    model.backend = "bare"
    with pytest.raises(NotImplementedError, match="fold-in of SAFER2 needs the row solver 'exact'"):
        model.fold_in(DATA)
    for name, value in (("backend", "gpu"), ("num_threads", -1), ("num_threads", "all")):
        broken = SAFER2(4, random_state=0).fit(DATA, show_progress=False)
        setattr(broken, name, value)
        for ask in (lambda it: it.fold_in(DATA), lambda it: it.recommend(0, DATA[0])):
            with pytest.raises((TypeError, ValueError), match=f"{name}.*{value}"):
                ask(broken)


def test_there_are_no_more_threads_than_are_of_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert [thread_count(n) for n in (0, 1, 8, 10**9)] == [4, 1, 8, 16]
    assert make_backend("numpy", 2**31 - 1).num_threads == 16
    monkeypatch.setattr(os, "cpu_count", lambda: 96)
    assert [thread_count(n) for n in (0, 64, 10**9)] == [96, 64, 96]
