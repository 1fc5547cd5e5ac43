"""`similar_items_frame` and `similar_users_frame`: similar ones by their original ids."""

import numpy as np
import pytest

from safecf import EASE, Interactions
from safecf.models.als import ALSModel
from tests.contract.quick import only

USERS = np.array([f"user {n}" for n in range(24)][::-1], dtype=object)
ITEMS = np.arange(15) * 10 + 7


@pytest.fixture
def named(make, data):
    return make().fit(Interactions.from_csr(data, USERS, ITEMS), show_progress=False)


def frame_of(model, side):
    return getattr(model, f"similar_{side}_frame")


def expected_rows(model, side, numbers, N=10, **options):
    """Return what the method by numbers does, without what is asked for itself."""
    names = ITEMS if side == "items" else USERS
    rows = []
    for number in numbers:
        found = zip(*getattr(model, f"similar_{side}")(number, N=N + 1, **options), strict=True)
        others = [(at, score) for at, score in found if at not in (-1, number)][:N]
        rows += [
            (names[number], names[at], score, rank)
            for rank, (at, score) in enumerate(others, start=1)
        ]
    return rows


def rows_of(table, side):
    assert table.column_names == [side[:-1], "similar", "score", "rank"]
    return [tuple(row.values()) for row in table.to_pylist()]


def test_frames_are_similar_with_names(named, side):
    names = ITEMS if side == "items" else USERS
    frame, everybody = frame_of(named, side), np.arange(names.size)
    assert rows_of(frame(N=4), side) == expected_rows(named, side, everybody, N=4)
    some = np.array([3, 0, 3])
    assert rows_of(frame(names[some]), side) == expected_rows(named, side, some)
    found = rows_of(frame(names[2], 3, among=names[[1, 2, 5]]), side)
    assert found == expected_rows(named, side, np.array([2]), N=3, **{side: [1, 2, 5]})
    found = rows_of(frame(names[some], **{f"filter_{side}": names[[0, 1]]}), side)
    assert found == expected_rows(named, side, some, **{f"filter_{side}": [0, 1]})
    assert frame([]).schema == frame().schema


def test_unknown_ids_are_named(named, side):
    frame = frame_of(named, side)
    with pytest.raises(KeyError, match=f"unknown {side[:-1]} 'nobody'"):
        frame("nobody")
    with pytest.raises(KeyError, match=rf"unknown {side[:-1]} \(in among\) 'nobody'"):
        frame(among=["nobody"])


@only(ALSModel)
def test_what_has_no_name_is_left_out(named, data):
    named.partial_fit_items([15], data.T.tocsr()[0])
    named.partial_fit_users([24], data[0])
    assert set(named.similar_users_frame(N=25)["similar"].to_pylist()) <= set(USERS)
    assert set(named.similar_items_frame(N=16)["similar"].to_pylist()) <= set(ITEMS.tolist())


@only(EASE)
def test_a_model_without_users_says_so(named):
    with pytest.raises(NotImplementedError, match="EASE stores nothing of the users"):
        named.similar_users_frame()
