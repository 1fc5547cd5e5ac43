"""Speed without a clock: how often training and answers call the methods of a backend."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.backends import BACKENDS, find_backend
from safecf.models import MODELS

RNG = np.random.default_rng(0)
LIKES = RNG.random((30, 20)) < 0.3
LIKES[:, 0] = True  # so that nobody is unknown
DATA = sp.csr_matrix(LIKES, dtype=np.float32)
AUDIENCE = DATA.T.tocsr()

# Of one more epoch, whatever the solver: nothing is placed or fetched.
SOLVES = {"copy": 1, "gram": 2, "rotate": 2, "fix_rotated": 2, "losses": 1, "solve_rows": 2}
BLOCKS = {"copy": 1, "gram": 1 + 2 * 2, "scores": 1, "scored_losses": 1, "update_block": 2 * 2}
STEPS = {"gram": 2, "fix": 2, "losses": 1, "descend": 2}
EPOCHS = {
    "IALS": SOLVES,
    "ERMMF": SOLVES,
    "SAFER2": SOLVES,
    "SAFER2CG": SOLVES,
    "IALSPP": BLOCKS,
    "SAFER2PP": BLOCKS,
    "CVaRMF": STEPS,
}
FOLD_IN = {"place_matrix": 1, "place_vector": 5, "zeros": 1, "solve_rows": 1, "fetch": 2}
FIXED = {"place": 1, "gram": 1, "fix": 1}


class Calls(Counter):
    """Calls of methods, but for those that another method makes."""

    depth = 0

    def during(self, work):
        self.clear()
        work()
        return {name: n for name, n in self.items() if n and name not in ("guarded", "host_bytes")}


@pytest.fixture
def calls(monkeypatch):
    """Register the backend "counting", and return its calls."""
    found, kind = Calls(), find_backend("cpu")

    def counting(name):
        def method(self, *arguments, **options):
            found[name] += found.depth == 0
            found.depth += 1
            try:
                return getattr(kind, name)(self, *arguments, **options)
            finally:
                found.depth -= 1

        return method

    names = [each for each in dir(kind) if each[0] != "_" and callable(getattr(kind, each))]
    methods = {name: counting(name) for name in names if name != "variants"}
    monkeypatch.setitem(BACKENDS, "counting", type("Counting", (kind,), methods))
    return found


def trained(name="SAFER2", **options):
    extra = {"block_size": 2} if name.endswith("PP") else {}
    model = MODELS[name](4, backend="counting", random_state=0, **(extra | options))
    return model.fit(DATA, show_progress=False)


@pytest.mark.parametrize("name", EPOCHS)
def test_an_epoch_does_nothing_twice(calls, name):
    short, long = (calls.during(lambda n=n: trained(name, iterations=n)) for n in (3, 6))
    assert Counter(long) - Counter(short) == Counter({k: 3 * n for k, n in EPOCHS[name].items()})
    assert (short["place_matrix"], short["place"]) == (2, 3)


def test_a_search_builds_an_index_once(calls):
    model = trained()
    users = np.arange(30)
    for first in ({"index": 1}, {}):
        assert calls.during(lambda: model.recommend(3, DATA[3])) == first
        assert calls.during(lambda: model.recommend_all(DATA)) == {}
        assert calls.during(lambda: model.similar_items(0)) == first
        assert calls.during(lambda: model.similar_users(users)) == first
    assert calls.during(lambda: model.recommend_factors(model.user_factors, DATA)) == {}


def test_only_what_a_partial_fit_changes_is_built_again(calls):
    model = trained()

    def ask():
        model.recommend(3, DATA[3])
        model.similar_items(0)
        model.similar_users(0)
        model.fold_in(DATA[:2])

    ask()
    assert calls.during(ask) == FOLD_IN
    assert calls.during(lambda: model.partial_fit_users([0], DATA[1])) == FOLD_IN
    assert calls.during(ask) == FOLD_IN | {"index": 1}  # of the users
    for first in (FIXED, {}):
        found = calls.during(lambda: model.recalculate_item([0], AUDIENCE[1]))
        assert found == {"place_matrix": 1, "zeros": 1, "solve_rows": 1, "fetch": 1} | first
    model.partial_fit_items([0], AUDIENCE[1])
    assert calls.during(ask) == FOLD_IN | FIXED | {"index": 2}  # the items, and their directions


def test_a_selection_is_indexed_by_itself(calls, monkeypatch):
    """Of three items three rows are gathered."""
    shapes, kind = [], BACKENDS["counting"]
    index = kind.index
    monkeypatch.setattr(
        kind, "index", lambda self, rows: (shapes.append(rows.shape), index(self, rows))[1]
    )
    model = trained()
    model.recommend(0, DATA[0], items=[1, 2, 3])
    model.similar_items(0, items=[1, 2, 3])
    assert shapes == [(3, 4), (3, 4)]
