"""Golden numbers: the paper's systems on MovieLens-1M, where the data is there."""

import numpy as np
import pytest

from benchmarks.baselines import BASELINES
from benchmarks.ml1m import SYSTEMS, cvar_mf, load_split, quality


@pytest.fixture(scope="module")
def split(real_data):
    return load_split(real_data)


@pytest.mark.parametrize("name", sorted(SYSTEMS.keys() - {"CVaR-MF"}))
def test_five_seeds_reach_the_table(split, name):
    """The mean of five seeds is within 0.003 of the authors' C++, or better, in all columns.

    One standard error is granted on top: the bits, and with them the seeds' luck, depend on the
    kind of CPU. docs/results/ml-1m.md shows the means without it.
    """
    make, authors = SYSTEMS[name]
    found = quality(make, split, range(5))
    luck = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (found.mean(axis=0) + luck >= np.array(authors) - 0.003).all(), found.mean(axis=0)


def test_cvar_mf_reaches_the_table_in_300_epochs(split):
    """The authors' 1,000 epochs are left to the benchmark: they take a minute."""
    found = quality(lambda seed: cvar_mf(seed, iterations=300), split, range(3))
    authors = np.array(SYSTEMS["CVaR-MF"][1])
    assert (found.mean(axis=0) >= authors - 0.003).all(), found.mean(axis=0)


def test_ease(split):
    make, _ = BASELINES["EASE"]
    [found] = quality(make, split, range(1))
    np.testing.assert_allclose(found, [0.3628, 0.4758, 0.1293, 0.2381], atol=0.0002)


def test_mult_vae(split):
    """One seed is within 0.008 of the paper, or better; its settings are from validation users."""
    pytest.importorskip("torch", reason="MultVAE trains with torch")
    make, paper = BASELINES["Mult-VAE"]
    [found] = quality(make, split, range(1))
    assert (found >= np.array(paper) - 0.008).all(), found
