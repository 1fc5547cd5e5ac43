"""The largest numbers that the native code takes: int32 indices and float32 weights."""

import numpy as np

MOST_IDS = 2**31 - 1
MOST_ROWS = 2**31 - 1
LARGEST_WEIGHT = np.float64(np.finfo(np.float32).max)
