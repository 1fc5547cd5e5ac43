"""Small fitted models with ids, and files of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf.data.datasets.synthetic import synthetic
from safecf.data.matrices.interactions import Interactions
from safecf.models import IALS, SAFER2
from tests.serving.service import separate

USERS, ITEMS = 200, 60
HOSTILE = "<img src=x onerror=alert(1)> & </script>\u202e"
WORDS = ("Café", "River", "Machine", "Orchard", "Signal")


def named(seed=0, users=USERS, items=ITEMS):
    """Return interactions with strings as ids; user 0 and item 0 have none."""
    matrix = synthetic(users, items, users * 12, tastes=4, seed=seed).matrix.tolil()
    matrix[0] = 0
    matrix[:, 0] = 0
    return Interactions.from_csr(
        matrix.tocsr(),
        user_ids=[f"user {each}" for each in range(users)],
        item_ids=[f"item {each}" for each in range(items)],
    )


def fit(kind=SAFER2, seed=0, **options):
    return fit_on(named(seed), kind, seed, **options)


def fit_on(interactions, kind=SAFER2, seed=0, **options):
    chosen = {"factors": 8, "iterations": 3, "random_state": seed} | options
    return kind(**chosen).fit(interactions, show_progress=False)


@pytest.fixture(scope="session")
def model():
    return fit()


@pytest.fixture(scope="session")
def baseline():
    return fit(IALS, seed=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def folder(tmp_path_factory, model, baseline):
    """Return a folder with the files of a model, a baseline, and titles."""
    place = tmp_path_factory.mktemp("served")
    model.save(place / "model.safetensors")
    baseline.save(place / "baseline.safetensors")
    titles = {
        "item": [f"item {each}" for each in range(ITEMS)],
        "title": [f"The {WORDS[each % 5]} of Number {each}" for each in range(ITEMS - 1)]
        + [HOSTILE],
        "genres": [[WORDS[each % 5], WORDS[each % 3]] for each in range(ITEMS)],
        "year": [1950 + each for each in range(ITEMS)],
    }
    pa.parquet.write_table(pa.table(titles), place / "titles.parquet")
    return place


@pytest.fixture
def process():
    """Return what runs `safecf serve` in a process of its own."""
    return separate
