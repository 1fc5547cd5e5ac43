"""Arrays in rows, and blocks of interactions, without a session."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safecf.als.loss import Loss
from safecf.errors import ChangedDataError, SolveError
from safecf.models.scaling import DataSums
from safecf.spark import blocks, building, chunks

PAIRS = st.lists(
    st.tuples(*(st.integers(0, high) for high in (4, 2, 6)), st.integers(1, 3)), min_size=1
)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100])
def test_arrays_survive_rows(length, monkeypatch):
    monkeypatch.setattr(chunks, "PIECE", 64)
    vector, matrix = np.arange(length, dtype=np.float64), np.ones((length, 3), dtype=np.float32)
    entries = [(5, 0, "mass", vector), (5, 2, "factors", matrix), (5, 0, "send", np.arange(3))]
    rows = list(chunks.pack(entries))
    found = chunks.Arrays(pa.Table.from_batches(rows[::-1]))
    np.testing.assert_array_equal(found.of("mass"), vector)
    np.testing.assert_array_equal(found.of("factors", 2), matrix.reshape(-1))
    assert found.sources("factors") == [2]
    assert found.optional("factors", 1) is None
    assert max(len(row["data"][0].as_py()) for row in rows) <= 64


EVERY_ROW = [(row, 0, 0, 1) for row in range(5)]
OFFSETS = np.array([0, 7, 14, 21])
LOSS, NONE = Loss(0.1), building.Big()


def rows_of(block, pairs):
    """Return (row, source, column, confidence) as Spark hands them over."""
    row, source, column, confidence = (np.array(each) for each in zip(*pairs, strict=True))
    places = np.full(len(row), block), row, source, column
    return pa.RecordBatch.from_arrays(
        [
            *(pa.array(each.astype(np.int32)) for each in places),
            pa.array(confidence.astype(np.float32)),
        ],
        list("abcde"),
    )


def built(pairs, held, factors=1, loss=LOSS, big=NONE):
    """Return the arrays that block 1 makes of (row, source, column, confidence), by block."""
    batch = rows_of(1, pairs)
    build = building.Build(np.array([0, 0, 5]), OFFSETS, held, factors, loss, big)
    return blocks.parts_of(pa.Table.from_batches(build(iter([batch]))))


def expected(pairs):
    """Sum up the confidences of every (row, source, column)."""
    found = {}
    for *pair, confidence in pairs:
        found[tuple(pair)] = found.get(tuple(pair), 0) + confidence
    return found


def summed(arrays, kind, other):
    """Return the confidences by row of the other block and column of this one."""
    rows = np.repeat(arrays.of(f"{kind}_rows", other), arrays.of(f"{kind}_counts", other))
    pairs = zip(rows.tolist(), arrays.of(f"{kind}_columns", other).tolist(), strict=True)
    found = dict(zip(pairs, arrays.of(f"{kind}_confidence", other).tolist(), strict=True))
    assert len(found) == len(rows)
    return found


@pytest.fixture(params=[0.0, 0.3])
def hot(request, monkeypatch):
    monkeypatch.setattr(building, "HOT", 1)
    monkeypatch.setattr(building, "EQUATIONS", request.param)


@pytest.mark.usefixtures("hot")
@given(PAIRS, st.integers(1, 4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_pair_is_somewhere_once(pairs, most):
    """In the block's own rows, whose columns are those it is sent, or with a hot row's source."""
    pairs = EVERY_ROW + pairs
    found, here = built(pairs, held=False, factors=most), {}
    own = found[1]
    sources = [source for source in sorted(found) if 1 in found[source].sources("send")]
    table = [
        (source, column) for source in sources for column in found[source].of("send", 1).tolist()
    ]
    indptr, indices = own.of("indptr"), own.of("indices")
    confidence = own.optional("confidence")
    for row in range(5):
        for entry in range(indptr[row], indptr[row + 1]):
            weight = 1.0 if confidence is None else confidence[entry]
            here[row, *table[indices[entry]]] = weight
    for source, arrays in found.items():
        assert (arrays.of("hot_counts", 1) > most).all()
        hot = summed(arrays, "hot", 1)
        assert not any((row, source, column) in here for row, column in hot)
        here |= {(row, source, column): weight for (row, column), weight in hot.items()}
    assert here == expected(pairs)


@given(PAIRS)
@settings(deadline=None)
def test_columns_of_a_held_side_are_all_its_rows(pairs):
    pairs = EVERY_ROW + pairs
    own = built(pairs, held=True)[1]
    wanted = expected(pairs)
    rows = np.repeat(np.arange(5), np.diff(own.of("indptr")))
    columns = [OFFSETS[source] + column for _, source, column in sorted(wanted)]
    np.testing.assert_array_equal(own.of("indices"), columns)
    np.testing.assert_array_equal(rows, [row for row, _, _ in sorted(wanted)])
    mass = np.bincount(rows, [wanted[pair] for pair in sorted(wanted)], 5)
    np.testing.assert_allclose(own.of("mass"), mass)
    np.testing.assert_array_equal(own.of("degree"), np.bincount(rows, minlength=5))
    sums = DataSums(*own.of("sums").tolist())
    assert sums.pairs == len(wanted)
    assert sums.mass == pytest.approx(np.count_nonzero(mass))


def bytes_sent(found, factors):
    """Return what is sent to block 1, in rows of factors."""
    sent = sum(len(each.of("send", 1)) for each in found.values())
    return sent + building.EQUATIONS * factors * sum(
        len(each.of("hot_rows", 1)) for each in found.values()
    )


@given(st.lists(st.sets(st.integers(0, 20), min_size=1), min_size=5, max_size=5))
@settings(deadline=None)
def test_hot_rows_are_those_that_save_most(sets):
    """Of all lengths from which on rows might be hot, none sends less than what is chosen."""
    pairs = [(row, at // 7, at % 7, 1) for row, columns in enumerate(sets) for at in columns]
    chosen = bytes_sent(built(pairs, held=False), 1)
    for source in range(3):
        parts = [[at for at in columns if at // 7 == source] for columns in sets]
        costs = []
        for limit in range(building.HOT, 8):
            cold = {at for part in parts if len(part) <= limit for at in part}
            costs.append(len(cold) + building.EQUATIONS * sum(len(part) > limit for part in parts))
        chosen -= min(costs)
    assert chosen == 0


BIG = np.array([0, 8, 9, 20])


@given(PAIRS)
@settings(deadline=None)
def test_users_have_the_pairs_of_big_items(pairs):
    """Their block keeps all pairs, and has those of big items by item as well."""
    pairs = EVERY_ROW + pairs
    own = built(pairs, held=True, big=building.Big(BIG))[1]
    found = {
        (row, source, item): weight
        for source in own.sources("big_rows")
        for (item, row), weight in summed(own, "big", source).items()
    }
    wanted = expected(pairs)
    assert found == {pair: wanted[pair] for pair in wanted if OFFSETS[pair[1]] + pair[2] in BIG}
    assert len(own.of("indices")) == len(wanted)
    of_items = [OFFSETS[source] + item for _, source, item in wanted]
    assert own.of("big_degree").tolist() == [of_items.count(item) for item in BIG]


def test_a_block_of_big_items_alone():
    """It has degrees, as others have, and no pairs."""
    big = building.Big(np.arange(5), np.arange(1, 6))
    own = built([(row, -1, -1, 0) for row in range(5)], held=False, loss=None, big=big)[1]
    assert own.of("degree").tolist() == [1, 2, 3, 4, 5]
    assert own.of("indptr").tolist() == [0] * 6
    assert len(own.of("mass")) == 5


@given(PAIRS, st.booleans())
@settings(deadline=None)
def test_marks_of_users_and_of_items_add_up_to_the_same(pairs, some_big):
    """Those of users, and those of items with the pairs of big ones, which users have."""
    pairs = [*EVERY_ROW, *((0, at // 7, at % 7, 1) for at in range(21)), *pairs]
    big = building.Big(BIG, np.ones(4, dtype=np.int64)) if some_big else NONE
    users = built(pairs, held=True, big=big)[1]
    items = 0
    for block in range(3):
        of_block = [
            (column, 1, row, weight)
            for row, source, column, weight in pairs
            if source == block and OFFSETS[source] + column not in big.rows
        ]
        lone = [(row - 7 * block, -1, -1, 0) for row in big.rows if row // 7 == block]
        batch = rows_of(block, of_block + lone)
        build = building.Build(OFFSETS, np.array([0, 0, 5]), True, 1, None, big)
        made = pa.Table.from_batches(build(iter([batch])))
        items += int(blocks.parts_of(made)[block].of("mark")[0])
    total = int(users.of("mark")[0]) - int(users.of("big_mark").sum())
    assert (total - items) % 2**64 == 0


def test_rows_without_pairs_are_an_error():
    """They were counted before, so that the data has changed since."""
    with pytest.raises(ChangedDataError, match="it lacks ids; fit a file or table"):
        built([(0, 0, 0, 1), (3, 1, 1, 1)], held=True)


def test_sums_of_a_pair_beyond_float32():
    with pytest.raises(SolveError, match="one pair of user and item add up beyond float32"):
        built([*EVERY_ROW, (0, 0, 0, 3e38), (0, 0, 0, 3e38)], held=True)


@given(PAIRS)
@settings(deadline=None)
def test_marks_tell_interactions_apart(pairs):
    pairs = EVERY_ROW + pairs
    mark = built(pairs, held=True)[1].of("mark")
    assert built(pairs[::-1], held=False)[1].of("mark") == mark
    (*first, confidence), *rest = pairs
    assert built([(*first, confidence + 1), *rest], held=True)[1].of("mark") != mark
