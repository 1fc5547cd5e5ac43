"""The best columns of dense scores, against a stable sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from safecf.models.ranking import best_columns

LOWEST = -np.finfo(np.float32).max
VALUES = st.sampled_from([-np.inf, -2, -0.0, 0, 1, 1.5, 3, np.inf, np.nan])


@given(
    arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=VALUES), st.data()
)
def test_best_columns(scores, data):
    k = data.draw(st.integers(1, scores.shape[1]))
    before = scores.copy()
    ids, best = best_columns(scores, k)
    np.testing.assert_array_equal(scores, before)
    assert ids.shape == best.shape == (len(scores), k)
    assert (ids.dtype, best.dtype) == (np.int32, np.float32)
    for row, values in enumerate(scores):
        order = [at for at in np.argsort(-values, kind="stable") if values[at] > -np.inf][:k]
        assert ids[row].tolist() == order + [-1] * (k - len(order))
        assert best[row].tolist() == [*values[order], *[LOWEST] * (k - len(order))]
