"""A small split, and a model that is trained on it in a moment."""

import pytest

from safecf import SAFER2, datasets
from safecf.split import strong_generalization


@pytest.fixture(scope="session")
def split():
    pairs = datasets.synthetic(600, 150, 12000, tastes=4).matrix.tocoo()
    return strong_generalization(pairs.row, pairs.col, heldout=60)


@pytest.fixture
def model():
    return SAFER2(8, iterations=12)
