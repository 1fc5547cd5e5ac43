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


def built(pairs, held, factors=1):
    """Return the arrays that block 1 makes of (row, source, column, confidence), by block."""
    row, source, column, confidence = (np.array(each) for each in zip(*pairs, strict=True))
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(np.ones(len(row), dtype=np.int32)),
            *(pa.array(each.astype(np.int32)) for each in (row, source, column)),
            pa.array(confidence.astype(np.float32)),
        ],
        list("abcde"),
    )
    build = building.Build(np.array([0, 5]), OFFSETS, held, factors, Loss(0.1))
    return blocks.parts_of(pa.Table.from_batches(build(iter([batch]))))


def expected(pairs):
    """Sum up the confidences of every (row, source, column)."""
    found = {}
    for *pair, confidence in pairs:
        found[tuple(pair)] = found.get(tuple(pair), 0) + confidence
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
        if 1 not in arrays.sources("hot"):
            continue
        starts = arrays.of("hot_indptr", 1)
        assert (np.diff(starts) > most).all()
        for place, row in enumerate(arrays.of("hot", 1).tolist()):
            for entry in range(starts[place], starts[place + 1]):
                pair = (row, source, int(arrays.of("hot_indices", 1)[entry]))
                assert pair not in here
                here[pair] = arrays.of("hot_confidence", 1)[entry]
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
        len(each.of("hot", 1)) for each in found.values()
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


def test_rows_without_pairs_are_told():
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
