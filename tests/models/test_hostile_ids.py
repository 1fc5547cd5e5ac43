"""Ids in files are looked at like everything else there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf import SAFER2, FileFormatError, Interactions
from safecf.models.files import pack_ids, unpack_ids
from tests.models.saved import DATA, load, put_together, saved, taken_apart

USERS = [f"é{n}" for n in range(12)]
ITEMS = np.arange(8) * 3


def make():
    model = SAFER2(factors=3, iterations=1, random_state=0)
    return model.fit(Interactions.from_csr(DATA, USERS, ITEMS), show_progress=False)


GOOD = saved(make())
OFFSETS = np.arange(13) * 2


def test_the_file_is_good():
    arrays, _ = taken_apart(GOOD)
    assert arrays["user_ids.utf8"].dtype == np.uint8
    assert bytes(arrays["user_ids.utf8"]).decode() == "".join(USERS)
    np.testing.assert_array_equal(arrays["item_ids"], ITEMS)
    assert load(GOOD).user_ids.tolist() == USERS


def offsets(**changes):
    found = taken_apart(GOOD)[0]["user_ids.offsets"].copy()
    for place, value in changes.items():
        found[int(place[1:])] = value
    return {"user_ids.offsets": found}


HOSTILE = {
    "too few": {"item_ids": ITEMS[:-1].copy()},
    "too many": {"item_ids": np.append(ITEMS, 99)},
    "twice": {"item_ids": np.zeros(8, dtype=np.int64)},
    "floats": {"item_ids": ITEMS.astype(float)},
    "a matrix": {"item_ids": ITEMS.reshape(2, 4)},
    "both kinds": {"user_ids": np.arange(12)},
    "no offsets": {"user_ids.offsets": np.zeros(0, dtype=np.int64)},
    "offsets of floats": {"user_ids.offsets": np.zeros(13)},
    "falling": offsets(_3=1),
    "negative": offsets(_0=-1),
    "late": offsets(_0=1),
    "beyond": offsets(_12=10**15),
    "short": offsets(_12=30),
    "inside a letter": offsets(_1=1),
    "one string": {"user_ids.offsets": np.array([0, 39])},
    "same strings": {"user_ids.utf8": np.zeros(24, dtype=np.uint8), "user_ids.offsets": OFFSETS},
    "not UTF-8": {
        "user_ids.utf8": np.full(24, 255, dtype=np.uint8),
        "user_ids.offsets": OFFSETS,
    },
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_ids(case):
    arrays, header = taken_apart(GOOD)
    with pytest.raises(FileFormatError, match=r"the file: .*(ids|array).* save it again"):
        load(put_together(arrays | HOSTILE[case], header))


def test_missing_offsets():
    arrays, header = taken_apart(GOOD)
    del arrays["user_ids.offsets"]
    with pytest.raises(FileFormatError, match=r"'user_ids\.offsets' is missing"):
        load(put_together(arrays, header))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4))
def test_flipped_bytes(flips):
    content = bytearray(GOOD)
    for position, value in flips:
        content[position] = value
    try:
        model = load(bytes(content))
    except FileFormatError:
        return
    assert model.user_ids is None or len(set(model.user_ids)) == 12


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)
)
def test_all_ids_come_back(ids):
    array = np.array(ids, dtype=object if isinstance(ids[0], str) else np.int64)
    back = unpack_ids(pack_ids("user_ids", array), "user_ids", len(ids), len(ids))
    assert back.tolist() == ids
    assert back.dtype == array.dtype


def test_lone_surrogates_are_refused_before_anything_is_written(tmp_path):
    model = make()
    model.user_ids = np.array(["\ud800", *USERS[1:]], dtype=object)
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
