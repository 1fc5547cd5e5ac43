"""Copies that the native backend makes of factors: bfloat16 words, and what a search needs."""

import numpy as np
import pytest

from safecf import _core
from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends.cpu import CpuBackend

MANY = 40  # queries, which are multiplied with the packed items


@pytest.fixture(params=CpuBackend.variants(num_threads=2), ids=repr)
def native(request):
    return request.param


def floats(values):
    return values.astype(np.float32)


def bfloat16_of(native, values):
    """The numbers in the bfloat16 words of values whose number is a multiple of 32."""
    words = np.empty((len(values), values.shape[1] // 2), dtype=np.uint32)
    _core.to_bfloat16(values, words, native.execution)
    lanes = {"amx": 16, "avx512": 16, "avx2": 8}.get(native.isa, 4)
    blocks = words.reshape(len(values), -1, 1, lanes)
    pairs = np.concatenate([blocks << 16, blocks], axis=2)
    return pairs.view(np.float32).reshape(values.shape)


def test_bfloat16_factors_are_off_by_the_last_of_eight_bits_at_most(native):
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(-100, 60, (300, 64)).astype(np.float32)
    values = floats(rng.normal(size=(300, 64)) * sizes)
    found = bfloat16_of(native, values)
    assert (np.abs(found - values) <= 2.0**-8 * np.abs(values)).all()
    assert (np.abs(found - values) > 2.0**-9 * np.abs(values)).any()


def test_zeros_are_zeros_in_bfloat16(native):
    """Beside anything: the upper number of a word has the lower one's bits behind its own."""
    values = floats(np.random.default_rng(0).normal(size=(40, 64)))
    values[::2, 16:48] = 0
    values[1] = 0
    found = bfloat16_of(native, values)
    assert (np.abs(found[values == 0]) < np.finfo(np.float32).tiny).all()
    assert (found[1] == 0).all()


def test_only_loose_tolerances_read_bfloat16(native):
    factors, spectrum = np.ones((5, 32), dtype=np.float32), np.ones(32)
    for solver, words in (
        (SpectralCG(1e-3), True),
        (SpectralCG(9e-4), False),
        (CG(5, 1e-2), False),
        (Exact(), False),
    ):
        side = native.fix_rotated(factors, spectrum, solver)
        assert (side.rotated.dtype == np.uint32) == words


def test_copies_are_made_when_they_are_needed(native):
    """In bfloat16 by the second search of few queries, packed by a search of many."""
    for factors, words, packed in ((16, 0, 16), (33, 2 * 64, 33)):
        items = np.ones((64 * 20, factors), dtype=np.float32)
        index = native.index(items)
        held = []
        for queries in (items[:1], items[:1], items[:MANY], items[:MANY]):
            index.search(queries, 3)
            held.append(index.catalogue.nbytes // len(items))
        assert held == [0, words, words + 4 * packed, words + 4 * packed]
