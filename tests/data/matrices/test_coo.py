"""Ids are numbered by first appearance."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.data.matrices import coo
from safecf.data.matrices.coo import IdEncoder
from safecf.data.matrices.ids import to_numpy
from tests.data.rows import integers, strings

PARTS = st.lists(st.lists(integers, max_size=8), max_size=4) | st.lists(
    st.lists(strings, max_size=8), max_size=4
)


@pytest.mark.parametrize("table", [0, 16, 2**27])
@given(parts=PARTS)
def test_codes_are_numbers_of_first_appearance(table, parts):
    values = [value for part in parts for value in part]
    kind = pa.large_string() if values and isinstance(values[0], str) else pa.int64()
    known = list(dict.fromkeys(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coo, "LARGEST_TABLE", table)
        encoder = IdEncoder()
        for part in parts:
            codes = encoder.codes(pa.array(part, type=kind))
            assert codes.dtype == np.int32
            assert codes.tolist() == [known.index(value) for value in part]
    assert ([] if encoder.ids() is None else encoder.ids().to_pylist()) == known


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["10", "-3", "0"], [10, -3, 0]),
        (["1", "007"], ["1", "007"]),
        (["1", "x"], ["1", "x"]),
        (["1", "+2"], ["1", "+2"]),
        (["1", str(2**63)], ["1", str(2**63)]),
        (["1.0"], ["1.0"]),
    ],
)
def test_strings_of_integers_become_integers_if_nothing_is_lost(texts, expected):
    encoder = IdEncoder()
    encoder.codes(pa.array(texts, type=pa.large_string()))
    found = to_numpy(encoder.ids(integers_in_text=True))
    assert found.tolist() == expected
    assert found.dtype == (np.int64 if isinstance(expected[0], int) else object)


def test_a_table_is_in_proportion_to_the_rows():
    for rows in (2, 100_000):
        ids = np.zeros(rows, dtype=np.int64)
        ids[-1] = 10**8
        tracemalloc.start()
        codes = IdEncoder().codes(pa.array(ids))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert codes.tolist() == [0] * (rows - 1) + [1]
        assert peak < 4 * coo.SMALLEST_TABLE + 4 * (coo.TABLE_PER_ROW + 32) * rows
