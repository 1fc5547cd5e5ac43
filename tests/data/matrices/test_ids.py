"""Ids are checked, and looked up again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.data.matrices.ids import Index, asked_ids, check_ids
from tests.data.rows import integers, strings
from tests.helpers import refused


@given(st.lists(integers, unique=True) | st.lists(strings, unique=True), st.data())
def test_index_finds_known_ids_only(known, data):
    other = integers if not known or isinstance(known[0], int) else strings
    asked = data.draw(st.lists(st.sampled_from(known) | other if known else other))
    array = np.array(known, dtype=object if known and isinstance(known[0], str) else np.int64)
    wanted = np.array(asked, dtype=array.dtype)
    expected = [known.index(value) if value in known else -1 for value in asked]
    assert Index(array, len(known)).find(wanted).tolist() == expected


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (np.array([1, 2]), ["1"]),
        (np.array([1, 2]), [1.0]),
        (np.array([-(2**63), 2]), np.array([2**63], dtype=np.uint64)),
        (np.array(["1", ""], dtype=object), [1]),
        (np.array(["1", ""], dtype=object), [None]),
        (np.array([], dtype=object), ["a"]),
        (None, [3]),
        (None, [-1]),
    ],
)
def test_ids_of_another_type_are_unknown(known, asked):
    index = Index(known, 3 if known is None else known.size)
    assert index.find(asked).tolist() == [-1]
    with pytest.raises(KeyError, match=r"unknown user .* known"):
        index.rows(asked, "user")


def test_lists_of_strings_are_looked_up_as_they_are():
    index = Index(np.array(["1", "u"], dtype=object), 2)
    assert index.find(["u", "u\0", 1, "1"]).tolist() == [1, -1, -1, 0]


@pytest.mark.parametrize(
    ("known", "asked", "words"),
    [
        (["42"], [42], "unknown user 42: only '42' is known; known ids are strings, not integers"),
        ([42], ["42"], "unknown user '42': only 42 is known; known ids are integers, not strings"),
        (["a", "b"], ["b", "x", "y"], "unknown user 'x': 2 are known, the first is 'a'"),
    ],
)
def test_a_key_error_names_the_first_unknown_id(known, asked, words):
    with pytest.raises(KeyError, match=words):
        Index(check_ids(known, len(known), "user_ids"), len(known)).rows(asked, "user")


GOOD = [["a", "b"], np.array(["a", "b"]), np.array(["a", "b"], dtype=object), ["a\0", "a"]]


def test_strings_become_objects_and_integers_int64():
    for given_ids in GOOD:
        found = check_ids(given_ids, 2, "user_ids")
        assert found.dtype == object
        assert [type(value) for value in found] == [str, str]
        assert found.tolist() == list(given_ids)
    assert check_ids(np.array([3, 4], dtype=np.uint8), 2, "user_ids").dtype == np.int64


BAD = [
    ([1], "user_ids has shape (1,); give one id for each of the 2 rows"),
    ([[1, 2]], "shape (1, 2)"),
    ([1, 1], "holds 1 more than once; give every row its own id"),
    (["a", "a"], "holds 'a' more than once"),
    ([1.5, 2], "type float64, not integers or strings"),
    *((kind(["a", 1]), "user_ids holds values of type mixed, not integers or")
      for kind in (list, tuple, lambda ids: np.array(ids, dtype=object))),
    (np.array([0, 2**63], dtype=np.uint64), "type uint64"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_ids_are_refused(case):
    given_ids, words = BAD[case]
    error = TypeError if " type " in words or words.startswith("type") else ValueError
    with refused(error, words):
        check_ids(given_ids, 2, "user_ids")


def test_lists_of_lists_are_refused():
    with refused(ValueError, "the ids have 2 dimensions; give one id, or a list"):
        asked_ids([[1, 2], [3, 4]])
    with refused(ValueError, "the ids are lists of different lengths; give one id"):
        asked_ids([["a", "b"], ["c"]])
