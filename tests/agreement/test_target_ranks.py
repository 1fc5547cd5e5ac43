"""The ranks of targets: the same from every backend, and their places in a search of all items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.backends.cpu import CpuBackend
from tests.agreement.placed import TWIN
from tests.agreement.test_backends import floats
from tests.agreement.test_search import KINDS, difficult_items, size_of_difficult
from tests.problems import matrix_of


def places(index, queries, targets, exclude=None, exclude_all=None):
    """Find the targets in a search of all items; 0 where one is not found."""
    ids, _ = index.search(queries, targets.num_columns, exclude, exclude_all)
    found = []
    for row, best in enumerate(ids):
        at = {item: place for place, item in enumerate(best.tolist(), start=1)}
        found += [at.get(item, 0) for item in targets.row(row)[0].tolist()]
    return np.array(found, dtype=np.int32)


@st.composite
def problems(draw):
    """Small integers: full of ties, and exact in float32. Targets may be excluded."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    num_items, count = draw(st.sampled_from([1, 2, 17, 40, 1100])), draw(st.integers(1, 30))
    queries, items = (
        rng.integers(-2, 3, (rows, draw(st.integers(1, 3)))).astype(np.float32)[:, :1]
        * np.ones(5, np.float32)
        for rows in (count, num_items)
    )
    matrices = [
        matrix_of(rng.integers(0, most + 1, count), num_items, rng)
        for most in (num_items, draw(st.sampled_from([0, num_items // 2, num_items])))
    ]
    banned = rng.choice(num_items, draw(st.integers(0, min(num_items, 4))), replace=False)
    return queries, items, *matrices, banned


@given(problems())
def test_the_backends_agree(problem):
    queries, items, targets, seen, banned = problem
    expected = TWIN.index(items).ranks(queries, targets, seen, banned)
    for native in CpuBackend.variants(2):
        index = native.index(items)
        np.testing.assert_array_equal(index.ranks(queries, targets, seen, banned), expected)
    np.testing.assert_array_equal(
        expected, places(TWIN.index(items), queries, targets, seen, banned)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [3, 33, 300])
def test_ranks_are_places_in_a_search_of_all_items(native, factors, kind):
    rng = np.random.default_rng(factors)
    items = floats(difficult_items(kind, size_of_difficult(native), factors, rng))
    count = 40 if native.name == "cpu" else 5
    queries = floats(rng.normal(size=(count, factors)))
    # up to so many that they are compared with all scores, and more
    targets = matrix_of(rng.integers(0, 120, count), len(items), rng)
    seen = matrix_of(rng.integers(0, 60, count), len(items), rng)
    banned = rng.choice(len(items), 30, replace=False)
    index = native.index(items)
    for rows, everywhere in ((None, None), (seen, None), (seen, banned)):
        found = index.ranks(queries, targets, rows, everywhere)
        np.testing.assert_array_equal(found, places(index, queries, targets, rows, everywhere))


MANY = (1, 15, 16, 17, 63, 64, 65, 100, 400, 1500)  # targets of a query, up to all items


@pytest.mark.parametrize("order", ["random", "best first", "worst first", "duplicates", "equal"])
def test_many_targets(native, order):
    """Scores are `ordered` or their negatives; ranks are places in a stable sort."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=1500)
    ordered = floats(
        {
            "random": values,
            "best first": -np.sort(-values),
            "worst first": np.sort(values),
            "duplicates": np.round(2 * values),
            "equal": np.zeros(1500),
        }[order]
    )
    signs = np.tile(floats(np.array([1, -1])), len(MANY))
    queries, items = np.zeros((len(signs), 20), np.float32), np.zeros((1500, 20), np.float32)
    queries[:, 7], items[:, 7] = signs, ordered
    targets = matrix_of(np.repeat(MANY, 2), 1500, rng)
    found = native.index(items).ranks(queries, targets)
    for row, sign in enumerate(signs):
        ranks = np.empty(1500, dtype=np.int32)
        ranks[np.argsort(-sign * ordered, kind="stable")] = 1 + np.arange(1500)
        here = found[targets.indptr[row] : targets.indptr[row + 1]]
        np.testing.assert_array_equal(here, ranks[targets.row(row)[0]])


def test_neither_threads_nor_batches_change_anything():
    rng = np.random.default_rng(0)
    items, queries = floats(rng.normal(size=(2500, 40))), floats(rng.normal(size=(150, 40)))
    targets = matrix_of(rng.integers(0, 60, 150), 2500, rng)
    for one, three in zip(CpuBackend.variants(1), CpuBackend.variants(3), strict=True):
        expected = one.index(items).ranks(queries, targets)
        np.testing.assert_array_equal(three.index(items).ranks(queries, targets), expected)
        for step in (1, 7, 97):
            index = three.index(items)
            parts = [
                index.ranks(queries[at : at + step], targets.part(at, min(at + step, 150)))
                for at in range(0, 150, step)
            ]
            np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_equal_items_rank_by_index(native):
    items, queries = np.ones((1500, 20), np.float32), np.ones((3, 20), np.float32)
    targets = matrix_of([1500, 40, 0], 1500, np.random.default_rng(0))
    found = native.index(items).ranks(queries, targets)
    np.testing.assert_array_equal(found, 1 + targets.indices)
