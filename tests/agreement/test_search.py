"""The best columns: the same from every backend, and from one query, few and many."""

import numpy as np
import pytest

from tests.agreement.placed import TWIN
from tests.agreement.test_backends import floats
from tests.long import some_long
from tests.problems import matrix_of

MANY = 40  # queries, which are multiplied with the packed items
KINDS = (
    *("plain", "near-ties", "equal", "whole numbers", "zeros", "all zero", "any size"),
    *("rounded apart", "no numbers", "one is far longer"),
)


@pytest.mark.parametrize("num_items", [1, 31, 32, 33, 1023, 1025, 3000])
@pytest.mark.parametrize("k", [1, 10, 40])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_the_backends_agree_on_whole_numbers(native, num_items, k, count):
    """Small integers are exact in float32, and full of ties."""
    rng = np.random.default_rng(num_items)
    queries = rng.integers(-2, 3, (count, 21)).astype(np.float32)
    items = rng.integers(-2, 3, (num_items, 21)).astype(np.float32)
    seen = matrix_of(rng.integers(0, min(num_items, 30) + 1, count), num_items, rng)
    banned = rng.choice(num_items, min(num_items, 5), replace=False)
    index, twin = native.index(items), TWIN.index(items)
    for _ in range(2):  # the second search of few queries has a bfloat16 copy
        for rows in (None, seen):
            for everywhere in (None, banned):
                expected = twin.search(queries, k, rows, everywhere)
                actual = index.search(queries, k, rows, everywhere)
                np.testing.assert_array_equal(actual[0], expected[0])
                np.testing.assert_array_equal(actual[1], expected[1])


@pytest.mark.parametrize("count", [2, 97])
@pytest.mark.parametrize("factors", [1, 17, 32, 300])
def test_scores_agree(native, factors, count):
    rng = np.random.default_rng(factors)
    queries = floats(rng.normal(size=(count, factors)))
    items = floats(rng.normal(size=(701, factors)))
    ids, scores = native.index(items).search(queries, 20)
    wanted = queries.astype(np.float64) @ items.T.astype(np.float64)
    np.testing.assert_allclose(scores, np.take_along_axis(wanted, ids, axis=1), atol=1e-4)
    np.testing.assert_allclose(scores, -np.sort(-wanted, axis=1)[:, :20], atol=1e-4)


@pytest.mark.parametrize("factors", [5, 16, 31, 64])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_equal_items_tie_wherever_they_stand(native, factors, count):
    rng = np.random.default_rng(0)
    items = np.repeat(floats(rng.normal(size=(1, factors))), 61, axis=0)
    ids, scores = native.index(items).search(floats(rng.normal(size=(count, factors))), 61)
    np.testing.assert_array_equal(ids, np.tile(np.arange(61), (count, 1)))
    assert (scores == scores[:, :1]).all()


@pytest.mark.parametrize("count", [1, 40])
def test_scores_that_are_no_numbers_are_never_returned(native, count):
    items = np.array([[np.nan], [1.0], [-np.inf], [2.0]], dtype=np.float32)
    queries = np.ones((count, 1), dtype=np.float32)
    for backend in (native, TWIN):
        ids, _ = backend.index(items).search(queries, 4)
        np.testing.assert_array_equal(ids, np.tile([3, 1, -1, -1], (count, 1)))


@pytest.mark.parametrize("factors", [1, 3, 16, 31, 256, 257, 300, 600])
@pytest.mark.parametrize("num_items", [1, 17, 33, 1025, 2500])
def test_one_query_and_a_batch_give_the_same_bits(native, factors, num_items):
    rng = np.random.default_rng(factors)
    items = floats(rng.normal(size=(num_items, factors)))
    queries = floats(rng.normal(size=(MANY + 1, factors)))
    index = native.index(items)
    # by the rows, then in bfloat16, then with the packed items
    ways = [[index.search(query[None], 12) for query in queries] for _ in range(2)]
    batch = index.search(queries, 12)
    ways.append([index.search(query[None], 12) for query in queries])
    for way in ways:
        for row, found in enumerate(way):
            assert_same(found, batch, [row])
    for rows in (slice(3, 5), slice(0, 4), slice(7, 36)):
        assert_same(index.search(queries[rows], 12), batch, rows)


def assert_same(found, batch, rows):
    np.testing.assert_array_equal(found[0], batch[0][rows])
    np.testing.assert_array_equal(found[1].view(np.int32), batch[1][rows].view(np.int32))


def size_of_difficult(native):
    """How many items: several tiles and blocks of C++; there are none elsewhere."""
    return 2500 if native.name == "cpu" else 150


def difficult_items(kind, count, factors, rng):
    """Items whose order in bfloat16 might be wrong."""
    items = rng.normal(size=(count, factors)) * rng.lognormal(size=(count, 1))
    if kind == "near-ties":
        items = rng.normal(size=factors) * (1 + rng.integers(-40, 41, (count, factors)) * 2.0**-16)
    elif kind == "rounded apart":  # the better ones down, the others up, nearly by the bound
        small = 2.0**-12 * rng.integers(1, 41, (count, 1))
        steps = np.where(np.arange(factors) % 2, 3, -1.5) + small
        steps[::2] = 1 - small[::2]
        items = 1 + 2.0**-8 * steps
    elif kind == "equal":
        items = np.repeat(items[:7], max(count // 25, 20), axis=0)
    elif kind == "whole numbers":
        items = rng.integers(-1, 2, (count, factors))
    elif kind == "zeros":
        items[rng.random(items.shape) < 0.7] = 0
        items[::3] = 0
    elif kind == "all zero":
        items[:] = 0
    elif kind == "any size":
        items *= 2.0 ** rng.integers(-140, 20, items.shape)
    elif kind == "no numbers":
        items[5], items[70, 0], items[300:310, -1] = np.nan, -np.inf, np.inf
    elif kind == "one is far longer":
        items[123] *= -1e6
    return items


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "factors", some_long([3, 16, 33, 64, 256, 300], {33, 64, 300}.__contains__)
)
def test_difficult_items_give_the_same_bits_too(native, factors, kind):
    rng = np.random.default_rng(factors)
    base = difficult_items(kind, size_of_difficult(native), factors, rng)
    for scale in (1, 1e-38, 1e-12, 1e12, 1e38):
        with np.errstate(over="ignore"):
            items = floats(base * scale)
        queries = floats(rng.normal(size=(5, factors)) * [[1], [1e-40], [1e-15], [1e9], [1e30]])
        queries[0] = 1
        assert_few_are_as_many(native, queries, items, rng)


def assert_few_are_as_many(native, queries, items, rng):
    """Every query by itself, without and with the bfloat16 copy, and among many."""
    count = len(items)
    copies = MANY // len(queries) if native.name == "cpu" else 3  # MANY is what C++ goes by
    many = np.concatenate([queries] * copies)
    seen = matrix_of(rng.integers(0, 60, len(many)), count, rng)
    banned = rng.choice(count, 30, replace=False)
    at_once = native.index(items)
    for k in (1, 20, 86, count):
        for rows, everywhere in ((None, None), (seen, None), (seen, banned)):
            batch = at_once.search(many, k, rows, everywhere)
            index = native.index(items)
            for row in (0, 0, 1, 2, 3, 4):
                own = None if rows is None else rows.part(row, row + 1)
                found = index.search(queries[row : row + 1], k, own, everywhere)
                assert_same(found, batch, [row])


def test_the_copy_is_enough_where_few_columns_are_left(native):
    rng = np.random.default_rng(0)
    items, queries = floats(rng.normal(size=(2500, 64))), floats(rng.normal(size=(2, 64)))
    index = native.index(items)
    index.search(queries, 20)
    for left in (0, 1, 19, 20, 21):
        banned = np.setdiff1d(np.arange(2500), rng.choice(2500, left, replace=False))
        plain = native.index(items).search(queries, 20, None, banned)
        np.testing.assert_array_equal(index.search(queries, 20, None, banned), plain)
