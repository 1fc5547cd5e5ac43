"""Coverage and the Gini index."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.measures.exposure import EXPOSURE, count_exposure

counts = st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(any)


@given(counts)
def test_gini_is_half_the_relative_mean_difference(exposure):
    values = np.array(exposure)
    spread = np.abs(values[:, None] - values[None, :]).mean()
    assert EXPOSURE["gini"](values) == pytest.approx(spread / (2 * values.mean()))
    assert EXPOSURE["coverage"](values) == np.count_nonzero(values) / len(values)


def test_exposure_of_nothing_and_of_padding():
    exposure = count_exposure(np.array([[0, 2, -1], [2, -1, -1]], dtype=np.int32), 4, k=2)
    np.testing.assert_array_equal(exposure, [1, 0, 2, 0])
    np.testing.assert_array_equal(count_exposure(np.array([[0, 2]]), 4, k=1), [1, 0, 0, 0])
    assert math.isnan(EXPOSURE["gini"](np.zeros(3, dtype=int)))
    assert EXPOSURE["gini"](np.array([5, 5, 5])) == 0
