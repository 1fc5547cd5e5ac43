"""A small split, and searches on it that take a moment."""

import shutil
from functools import partial

import pytest

import safecf
from safecf import IALS, SAFER2, datasets
from safecf.split import strong_generalization

tune = partial(safecf.tune, show_progress=False)
SMALL = IALS(4, iterations=2)


def without_time(tuning):
    """Return the trials of every model but for the seconds that they took."""
    return [
        [{**trial.to_dict(), "seconds": 0} for trial in search.trials] for search in tuning.searches
    ]


@pytest.fixture(scope="session")
def split():
    pairs = datasets.synthetic(600, 150, 12000, tastes=4).matrix.tocoo()
    return strong_generalization(pairs.row, pairs.col, heldout=60)


@pytest.fixture
def model():
    return SAFER2(8, iterations=12)


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """The folder of the studies of `tuned` and `small`, which tests copy."""
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="session")
def tuned(split, studies):
    """A search of 20 trials, and one of its baseline."""
    model, baseline = SAFER2(8, iterations=12), IALS(8, iterations=12)
    return tune(model, split, trials=20, against=[baseline], study=studies / "tuned")


@pytest.fixture(scope="session")
def small(split, studies):
    """A search of 4 trials."""
    return tune(SMALL, split, trials=4, study=studies / "small")


@pytest.fixture
def study(small, studies, tmp_path):
    """A copy of the file of `small`."""
    return shutil.copy(studies / "small", tmp_path / "study.sqlite")
