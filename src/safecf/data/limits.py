"""The largest and smallest numbers that the native code takes: int32 indices, float32 weights."""

import numpy as np

MOST_IDS = 2**31 - 1
MOST_ROWS = 2**31 - 1
# Rows and columns have up to 2^31 weights, whose sums have to stay within float32 (3.4e38), and so
# have the squares of sums that conjugate gradients take: of 10^7 weights of 1e12, 1e38.
LARGEST_WEIGHT = np.float64(1e12)
# Smaller ones, which float32 holds with fewer digits, count as 0: 1 / weight has to be finite.
SMALLEST_WEIGHT = np.finfo(np.float32).tiny
