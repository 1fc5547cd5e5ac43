"""Golden numbers: the paper's systems on MovieLens-1M, where the data is there."""

import numpy as np
import pytest

from benchmarks.ml1m import SYSTEMS, load_split, quality


@pytest.fixture(scope="module")
def split(real_data):
    return load_split(real_data)


@pytest.mark.parametrize("name", SYSTEMS)
def test_five_seeds_reach_the_table(split, name):
    """The mean of five seeds is within 0.003 of the authors' C++, or better, in all columns.

    One standard error is granted on top: the bits, and with them the seeds' luck, depend on the
    kind of CPU. docs/results/ml-1m.md shows the means without it.
    """
    make, authors = SYSTEMS[name]
    found = quality(make, split, range(5))
    luck = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (found.mean(axis=0) + luck >= np.array(authors) - 0.003).all(), found.mean(axis=0)
