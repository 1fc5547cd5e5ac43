"""Small fitted models with ids, and files of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from safecf import IALS, SAFER2, Interactions, datasets
from tests.serving.service import separate

USERS, ITEMS = 200, 60
HOSTILE = "<img src=x onerror=alert(1)> & </script>\u202e"
WORDS = ("Café", "River", "Machine", "Orchard", "Signal")


def named(seed=0, users=USERS, items=ITEMS):
    """Return interactions with strings as ids; user 0 and item 0 have none."""
    matrix = datasets.synthetic(users, items, users * 12, tastes=4, seed=seed).matrix.tolil()
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


def best(model, *history, k=10, **options):
    """What the library recommends to a user with these items: ids and scores, best first."""
    places = [model.item_ids.tolist().index(each) for each in history]
    row = scipy.sparse.csr_matrix((np.ones(len(places)), ([0] * len(places), places)), (1, ITEMS))
    ids, scores = model.recommend(0, row, N=k, recalculate_user=True, **options)
    return list(zip(model.item_ids[ids].tolist(), scores.tolist(), strict=True))


def listed(reply):
    """The ids and the scores of an answer."""
    return [(each["id"], each["score"]) for each in reply.json["items"]]


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
