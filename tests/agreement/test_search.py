"""The best columns and ranks: the same from every backend, and from one query, few and many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agreement.placed import TWIN, floats, with_threads
from tests.problems import matrix_of
from tests.reference import places

NEEDS = "search"
MANY = 40  # queries, which are multiplied with the packed items
SIZES = [1, 2, 17, 31, 32, 33, 40, 1023, 1025, 1100, 3000]


@st.composite
def whole_numbers(draw):
    """Small integers are exact in float32, and full of ties; anything may be left out."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, size = draw(st.sampled_from([1, 2, 3, MANY, 100])), draw(st.sampled_from(SIZES))
    width = draw(st.sampled_from([1, 5, 21, 33]))
    queries, items = (floats(rng.integers(-2, 3, (rows, width))) for rows in (count, size))
    if draw(st.booleans()):
        queries, items = (np.repeat(each[:, :1], width, axis=1) for each in (queries, items))
    most = draw(st.sampled_from([0, min(size, 30), size // 2, size]))
    seen = matrix_of(rng.integers(0, most + 1, count), size, rng) if draw(st.booleans()) else None
    targets = matrix_of(rng.integers(0, min(size, 120) + 1, count), size, rng)
    banned = rng.choice(size, draw(st.integers(0, min(size, 5))), replace=False)
    return queries, items, targets, seen, draw(st.sampled_from([None, banned]))


@settings(max_examples=settings.default.max_examples // 3)
@given(problem=whole_numbers(), k=st.sampled_from([1, 10, 40, 3000]))
def test_whole_numbers_are_found_and_ranked_alike(native, problem, k):
    queries, items, targets, seen, banned = problem
    k = min(k, len(items))
    index, twin = native.index(items), TWIN.index(items)
    expected = twin.search(queries, k, seen, banned)
    for _ in range(2):  # the second search of few queries has a bfloat16 copy
        for ours, theirs in zip(index.search(queries, k, seen, banned), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert [each.dtype for each in expected] == [np.int32, np.float32]
    ranks = twin.ranks(queries, targets, seen, banned)
    assert ranks.dtype == np.int32
    np.testing.assert_array_equal(index.ranks(queries, targets, seen, banned), ranks)
    np.testing.assert_array_equal(places(twin, queries, targets, seen, banned), ranks)


@pytest.mark.parametrize("d", [1, 17, 32, 300, pytest.param(2048, marks=pytest.mark.slow)])
def test_scores_agree(native, d):
    rng = np.random.default_rng(d)
    items = floats(rng.normal(size=(701, d)))
    for count in (2, 97):
        queries = floats(rng.normal(size=(count, d)))
        ids, scores = native.index(items).search(queries, 20)
        wanted = queries.astype(np.float64) @ items.T.astype(np.float64)
        atol = 1e-4 * max(1, d / 300)
        np.testing.assert_allclose(scores, np.take_along_axis(wanted, ids, axis=1), atol=atol)
        np.testing.assert_allclose(scores, -np.sort(-wanted, axis=1)[:, :20], atol=atol)


@pytest.mark.parametrize("d", [5, 16, 31, 64])
def test_equal_items_tie_wherever_they_stand(native, d):
    rng = np.random.default_rng(0)
    items = np.repeat(floats(rng.normal(size=(1, d))), 61, axis=0)
    targets = matrix_of([61, 40, 0], 61, rng)
    for count in (1, 7, MANY):
        index, queries = native.index(items), floats(rng.normal(size=(count, d)))
        ids, scores = index.search(queries, 61)
        np.testing.assert_array_equal(ids, np.tile(np.arange(61), (count, 1)))
        assert (scores == scores[:, :1]).all()
    ranks = native.index(items).ranks(queries[:3], targets)
    np.testing.assert_array_equal(ranks, 1 + targets.indices)


@pytest.mark.parametrize("count", [1, MANY])
def test_scores_that_are_no_numbers_are_never_returned(native, count):
    items = floats([[np.nan], [1.0], [-np.inf], [2.0]])
    targets = matrix_of([4] * count, 4, np.random.default_rng(0))
    for backend in (native, TWIN):
        index = backend.index(items)
        ids, _ = index.search(np.ones((count, 1), np.float32), 4)
        np.testing.assert_array_equal(ids, np.tile([3, 1, -1, -1], (count, 1)))
        ranks = index.ranks(np.ones((count, 1), np.float32), targets)
        np.testing.assert_array_equal(ranks, np.tile([0, 2, 0, 1], count))


def assert_bits(found, batch, rows=slice(None)):
    np.testing.assert_array_equal(found[0], batch[0][rows])
    np.testing.assert_array_equal(found[1].view(np.int32), batch[1][rows].view(np.int32))


BITS = [(1, 2500), (3, 17), (16, 33), (16, 1025), (31, 1), (256, 1025), (257, 2500), (600, 17)]


@pytest.mark.parametrize(("d", "size"), BITS, ids=str)
def test_one_query_and_a_batch_give_the_same_bits(native, d, size):
    rng = np.random.default_rng(d)
    items, queries = floats(rng.normal(size=(size, d))), floats(rng.normal(size=(MANY + 1, d)))
    index = native.index(items)
    # by the rows, then in bfloat16, then with the packed items
    ways = [[index.search(query[None], 12) for query in queries] for _ in range(2)]
    batch = index.search(queries, 12)
    ways.append([index.search(query[None], 12) for query in queries])
    for way in ways:
        for row, found in enumerate(way):
            assert_bits(found, batch, [row])
    for rows in (slice(3, 5), slice(0, 4), slice(7, 36)):
        assert_bits(index.search(queries[rows], 12), batch, rows)


# Items whose order in bfloat16 might be wrong.
DIFFICULT = (
    *("plain", "near ties", "rounded apart", "few", "whole numbers", "zeros", "all zero"),
    *("any size", "no numbers", "one far longer"),
)


def difficult_items(kind, count, d, rng):
    items = rng.normal(size=(count, d)) * rng.lognormal(size=(count, 1))
    match kind:
        case "near ties":
            items = rng.normal(size=d) * (1 + rng.integers(-40, 41, (count, d)) * 2.0**-16)
        case "rounded apart":  # the better ones down, the others up, nearly by the bound
            small = 2.0**-12 * rng.integers(1, 41, (count, 1))
            steps = np.where(np.arange(d) % 2, 3, -1.5) + small
            steps[::2] = 1 - small[::2]
            items = 1 + 2.0**-8 * steps
        case "few":
            items = np.repeat(items[:7], max(count // 25, 20), axis=0)
        case "whole numbers":
            items = rng.integers(-1, 2, (count, d))
        case "zeros":
            items *= (rng.random((count, d)) < 0.3) & (np.arange(count) % 3 > 0)[:, None]
        case "all zero":
            items[:] = 0
        case "any size":
            items *= 2.0 ** rng.integers(-140, 20, (count, d))
        case "no numbers":
            items[5], items[70, 0], items[90:100, -1] = np.nan, -np.inf, np.inf
        case "one far longer":
            items[123] *= -1e6
    return items


@pytest.mark.parametrize("kind", DIFFICULT)
@pytest.mark.parametrize(
    "widths", [(3, 16, 256), pytest.param((33, 64, 300), marks=pytest.mark.slow)], ids=str
)
def test_difficult_items_give_the_same_bits_too(native, widths, kind):
    """Queries alone, without and with the bfloat16 copy, and among many; ranks are places."""
    for d in widths:
        check_difficult_items(native, d, kind)


def check_difficult_items(native, d, kind):
    rng = np.random.default_rng(d)
    on_cpu = native.name == "cpu"  # whose C++ has several tiles and blocks, and MANY
    base = difficult_items(kind, 2500 if on_cpu else 150, d, rng)
    queries = floats(rng.normal(size=(5, d)) * [[1], [1e-40], [1e-15], [1e9], [1e30]])
    queries[0] = 1
    many = np.concatenate([queries] * (MANY // 5 if on_cpu else 3))
    seen, targets = (
        matrix_of(rng.integers(0, most, len(many)), len(base), rng) for most in (60, 120)
    )
    banned = rng.choice(len(base), 30, replace=False)
    for scale in (1, 1e-38, 1e12, 1e38) if d < 256 else (1, 1e-12):
        with np.errstate(over="ignore"):
            items = floats(base * scale)
        at_once = native.index(items)
        for k in (1, 20, len(items)):
            for rows, everywhere in ((None, None), (seen, banned)):
                batch, index = at_once.search(many, k, rows, everywhere), native.index(items)
                for row in (0, 0, 1, 2, 3, 4):
                    own = None if rows is None else rows.part(row, row + 1)
                    found = index.search(queries[row : row + 1], k, own, everywhere)
                    assert_bits(found, batch, [row])
        for rows, everywhere in ((None, None), (seen, banned)):
            found = at_once.ranks(many, targets, rows, everywhere)
            np.testing.assert_array_equal(found, places(at_once, many, targets, rows, everywhere))


def test_the_copy_is_enough_where_few_columns_are_left(native):
    rng = np.random.default_rng(0)
    items, queries = floats(rng.normal(size=(2500, 64))), floats(rng.normal(size=(2, 64)))
    index = native.index(items)
    index.search(queries, 20)
    for left in (0, 1, 19, 20, 21):
        banned = np.setdiff1d(np.arange(2500), rng.choice(2500, left, replace=False))
        found = native.index(items).search(queries, 20, None, banned)
        assert_bits(index.search(queries, 20, None, banned), found)


ORDERS = {
    "random": lambda values: values,
    "best first": lambda values: -np.sort(-values),
    "worst first": np.sort,
    "duplicates": lambda values: np.round(2 * values),
    "equal": np.zeros_like,
}
TARGETS = (1, 15, 16, 17, 63, 64, 65, 100, 400, 1500)  # of a query, up to all items


@pytest.mark.parametrize("order", ORDERS)
def test_many_targets(native, order):
    """Scores are `ordered` or their negatives; ranks are places in a stable sort."""
    rng = np.random.default_rng(0)
    ordered = floats(ORDERS[order](rng.normal(size=1500)))
    signs = np.tile(floats([1, -1]), len(TARGETS))
    queries, items = np.zeros((len(signs), 20), np.float32), np.zeros((1500, 20), np.float32)
    queries[:, 7], items[:, 7] = signs, ordered
    targets = matrix_of(np.repeat(TARGETS, 2), 1500, rng)
    found = native.index(items).ranks(queries, targets)
    for row, sign in enumerate(signs):
        ranks = np.empty(1500, dtype=np.int32)
        ranks[np.argsort(-sign * ordered, kind="stable")] = 1 + np.arange(1500)
        here = found[targets.indptr[row] : targets.indptr[row + 1]]
        np.testing.assert_array_equal(here, ranks[targets.row(row)[0]])


def test_neither_threads_nor_batches_change_a_rank(native):
    rng = np.random.default_rng(0)
    items, queries = floats(rng.normal(size=(2500, 40))), floats(rng.normal(size=(150, 40)))
    targets = matrix_of(rng.integers(0, 60, 150), 2500, rng)
    expected = with_threads(native, 1).index(items).ranks(queries, targets)
    three = with_threads(native, 3)
    np.testing.assert_array_equal(three.index(items).ranks(queries, targets), expected)
    for step in (1, 7, 97) if native.same_bits else ():
        index = three.index(items)
        parts = [
            index.ranks(queries[at : at + step], targets.part(at, min(at + step, 150)))
            for at in range(0, 150, step)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), expected)
