"""Files of models and checkpoints: what is read is whole, or one line says why it is refused."""

import copy
import json
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import safecf
from safecf import EASE, SAFER2, CVaRMF, FileFormatError, Interactions, MultVAE
from tests.helpers import REMEDY, refused, same
from tests.models.saved import (
    ADAM,
    DATA,
    NAMED,
    SMALL,
    checkpoint,
    good,
    load,
    put_together,
    raw,
    saved,
    taken_apart,
    trained,
)
from tests.strategies import damaged, damaged_arrays

MODELS = ("groups", "items", "network")
FAILURES = (FileFormatError, ValueError, safecf.SolveError)
FOLDER = tempfile.TemporaryDirectory()
KINDS = pytest.mark.parametrize("kind", [*MODELS, "checkpoint"])


def content_of(kind):
    return checkpoint(FOLDER.name) if kind == "checkpoint" else good(kind)


def resume(content, **options):
    path = Path(FOLDER.name, "resumed.safetensors")
    path.write_bytes(content)
    model = CVaRMF(**ADAM | options)
    try:
        return model.fit(NAMED, show_progress=False, resume=path)
    except FAILURES:
        assert not model.is_fitted
        raise


def read(kind, content):
    """Read a file, and look at what came out of it."""
    if kind == "checkpoint":
        return resume(content)
    model = load(content)
    check_whole(model)
    if isinstance(model, EASE) or model.factors == model.item_factors.shape[1]:
        same(load(saved(model)), model)  # another number of factors is told when it is saved
    return model


def check_whole(model):
    """What `fit` leaves: arrays that fit each other, finite, and nothing negative that counts."""
    users, items = model.shape
    assert {type(users), type(items)} == {int}
    assert min(users, items) > 0
    assert model.recommend(0, DATA[0], recalculate_user=True)[0].size
    assert model.similar_items(0)[0].size
    assert model.item_popularity is None or (model.item_popularity >= 0).all()
    assert model.item_ids is None or len(set(model.item_ids)) == items == 8
    assert model.user_ids is None or len(set(model.user_ids)) == len(model.user_ids) >= users
    if isinstance(model, EASE):
        assert model.item_weights.shape == (items, items)
        assert np.isfinite(model.item_weights).all()
        return
    assert len(model.user_factors) >= users
    assert len(model.item_factors) == items
    assert np.isfinite(model.user_factors).all()
    assert np.isfinite(model.item_factors).all()
    assert model.seed >= 0
    assert all(type(record.epoch) is int for record in model.history)
    assert all(type(record.objective) is float for record in model.history)
    if isinstance(model, MultVAE):
        assert all(np.isfinite(each).all() for each in model.encoder)
        return
    sides = model.user_weights, model.user_mass, model.user_counts
    assert all(len(each) == len(model.user_factors) and (each >= 0).all() for each in sides)
    assert model.user_counts.max() <= 1e12
    assert 0 < model.num_users <= model.user_counts.sum() * (1 + 1e-9)
    assert type(model.num_items) is int
    assert 1 <= model.num_items <= items
    groups = model.group_weights
    assert groups is None or (len(groups) > 1 and min(groups.values()) >= 0)


def reads_or_refuses(kind, content):
    """A model's file is refused by FileFormatError, a checkpoint also by the training."""
    expected = FAILURES if kind == "checkpoint" else (FileFormatError,)
    try:
        return read(kind, content)
    except expected as problem:
        text = str(problem)
        assert "\n" not in text
        assert REMEDY.search(text) if len(text) < 500 else len(text) < 600, text
    return None


@pytest.mark.parametrize("part", ["header", "arrays"])
@KINDS
@settings(max_examples=200)
@given(drawn=st.data())
def test_any_part_of_a_file(kind, part, drawn):
    arrays, header = taken_apart(content_of(kind))
    before = put_together(arrays, header, seal=False)
    if part == "header":
        header = drawn.draw(damaged(header))
    else:
        arrays = drawn.draw(damaged_arrays(arrays))
    reads_or_refuses(kind, put_together(arrays, header))
    content = put_together(arrays, header, seal=False)
    if content != before:
        with refused(FileFormatError):  # the checksum is that of the old file
            read(kind, content)


@KINDS
@settings(max_examples=200)
@given(drawn=st.data())
def test_any_byte(kind, drawn):
    """A changed byte is found, or changes nothing, as one between two JSON values."""
    before = content = content_of(kind)
    places = st.integers(0, len(content) - 1)
    for place, value in drawn.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=3)):
        content = content[:place] + bytes([value]) + content[place + 1 :]
    content = content[: drawn.draw(places | st.just(len(content)))]
    content += drawn.draw(st.just(b"") | st.binary(max_size=9))
    try:
        found = read(kind, content)
    except FileFormatError:
        assert content != before
    else:
        wanted = read(kind, before)
        if kind == "checkpoint":
            np.testing.assert_array_equal(found.item_factors, wanted.item_factors)
        else:
            same(found, wanted)
            same(found, trained(kind))


GOOD = good()
ARRAYS, HEADER = taken_apart(GOOD)
FLOATS = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
NO_FILES = {
    "empty": b"",
    "text": b"this is not a model at all, it is a text file",
    "a pickle": b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.",
    "a huge header": struct.pack("<Q", 2**63) + GOOD[8:],
    "a huge array": raw({"a": FLOATS | {"shape": [2**40, 2**20], "data_offsets": [0, 2**62]}}),
    "a huge empty array": raw({"a": FLOATS | {"shape": [0, 2**62], "data_offsets": [0, 0]}}),
    "an unknown type": raw({"a": FLOATS | {"dtype": "F99"}}, bytes(4)),
    "a type unknown to numpy": raw({"a": FLOATS | {"dtype": "BF16", "shape": [2]}}, bytes(4)),
    "overlapping arrays": raw({"a": FLOATS, "b": FLOATS}, bytes(4)),
    "a nested header": raw(b'{"__metadata__":' + b"[" * 10**5),
    "no metadata": safetensors.numpy.save(ARRAYS),
    "no JSON": put_together(ARRAYS, "{'format': 1}"),
    "NaN": put_together(ARRAYS, '{"format": NaN}'),
    "nested JSON": put_together(ARRAYS, "[" * 10**5),
    "a long number": put_together(ARRAYS, '{"format": 1' + "0" * 10**4 + "}"),
    "a list": put_together(ARRAYS, "[]"),
}


@pytest.mark.parametrize("case", NO_FILES)
def test_what_no_model_has_written(case, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(NO_FILES[case])
    with refused(FileFormatError, f"{path}: it"):
        safecf.load(path)
    with refused(FileFormatError, "the file: it"):
        load(NO_FILES[case])
    with refused(FileFormatError, f"{path}: it"):
        SAFER2(**SMALL).fit(DATA, show_progress=False, resume=path)


MESSAGES = [
    ({"format": 3}, "known is up to 2; try a newer version"),
    ({"kind": "checkpoint"}, "it is a checkpoint, not a model; give it to fit by resume=FILE"),
    ({"class": "os.system"}, "it holds a 'os.system', known are IALS"),
    ({"options": {"shell": "rm"}}, "SAFER2 has no option 'shell'"),
    ({"options": {"tail": 7}}, "tail=7"),
    ({"fitted": HEADER["fitted"] | {"seed": 10**400}}, "'seed' is 1000"),
    *(
        ({"fitted": HEADER["fitted"] | {name: value}}, "contradict each other; save it again")
        for name, values in {"shape": [[12, 9], [0, 8]], "num_users": [0, 13, "inf"]}.items()
        for value in values
    ),
]


@pytest.mark.parametrize(("part", "message"), MESSAGES)
def test_messages_name_what_is_wrong(part, message):
    with refused(FileFormatError, "the file: ", message):
        load(put_together(ARRAYS, HEADER | part))


WRONG = {
    "user_mass": (lambda mass: mass[1:].copy(), "is float64[11], where float64[12] is needed"),
    "item_popularity": (lambda shares: -shares, "popularity of its items is negative"),
}


def test_only_files_of_version_0_1_have_no_checksum():
    arrays, header = taken_apart(GOOD)
    with refused(FileFormatError, "its checksum does not fit its contents"):
        load(put_together(arrays, header | {"format": 1}, seal=False))
    del header["checksum"]
    with refused(FileFormatError, "its checksum does not fit its contents"):
        load(put_together(arrays, json.dumps(header)))
    assert load(put_together(arrays, json.dumps(header | {"format": 1}))).is_fitted


def test_names_that_no_file_can_have():
    for name in ("a\0b", "", ".", "a\ud800"):
        with refused(ValueError, "does not name a file"):
            safecf.load(name)


CHECKPOINT_PARTS = [
    ({"seed": -1}, (), "its history is damaged"),
    ({}, ("users.mean", "users.square"), "'users.mean' is missing"),
    ({}, ("items.mean", "items.square"), "'items.mean' is missing"),
]


@pytest.mark.parametrize(("part", "gone", "message"), CHECKPOINT_PARTS)
def test_messages_name_what_a_checkpoint_lacks(part, gone, message):
    arrays, header = taken_apart(content_of("checkpoint"))
    assert {*gone} <= {*arrays}
    left = {name: array for name, array in arrays.items() if name not in gone}
    with refused(FileFormatError, message):
        resume(put_together(left, header | part))


@pytest.mark.parametrize("name", WRONG)
def test_messages_name_the_array(name):
    change, message = WRONG[name]
    with refused(FileFormatError, message):
        load(put_together(ARRAYS | {name: change(ARRAYS[name])}, HEADER))


OFFSETS = np.arange(0, 26, 2)  # of twelve ids of two bytes each
IDS = {
    "numbers and texts": {"user_ids": np.arange(12)},
    "offsets beyond the texts": {"user_ids.offsets": OFFSETS + (np.arange(13) == 12)},
    "offsets from 1": {"user_ids.offsets": OFFSETS + (np.arange(13) == 0)},
    "half a letter": {"user_ids.utf8": np.frombuffer(b"ab\xff" * 8, np.uint8)},
    "the same text": {"user_ids.utf8": np.zeros(24, np.uint8)},
    "the same number": {"item_ids": np.zeros(8, np.int64)},
}


@pytest.mark.parametrize("case", IDS)
def test_ids_that_are_damaged(case):
    arrays, header = taken_apart(good("groups"))
    texts = np.frombuffer("".join(f"{n:02}" for n in range(12)).encode(), np.uint8)
    arrays |= {"user_ids.utf8": texts, "user_ids.offsets": OFFSETS}
    assert load(put_together(arrays, header)).user_ids[3] == "03"
    with refused(FileFormatError, "the file: the ", "; save it again"):
        load(put_together(arrays | IDS[case], header))


def test_whole_numbers_are_floats_too():
    """JSON has one kind of number, and other writers leave out the point."""
    header = copy.deepcopy(HEADER)
    header["fitted"]["history"][0]["objective"] = 1
    assert load(put_together(ARRAYS, header)).history[0].objective == 1.0


def test_any_reader_of_safetensors_and_strict_json_reads_it():
    model = SAFER2(**SMALL, bandwidth=np.inf).fit(NAMED, show_progress=False)
    content = saved(model)
    assert b"Infinity" not in content
    assert load(content).bandwidth == np.inf
    arrays, header = taken_apart(content)
    np.testing.assert_array_equal(arrays["user_factors"], model.user_factors)
    np.testing.assert_array_equal(arrays["item_factors"], model.item_factors)
    assert header["options"] == model.get_params() | {"bandwidth": "inf"}
    assert bytes(arrays["user_ids.utf8"]).decode() == "".join(NAMED.user_ids)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.lists(TEXTS, min_size=1, max_size=9, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9, unique=True)
)
def test_all_ids_come_back(ids):
    data = Interactions.from_csr(sp.csr_matrix(np.ones((len(ids), 2))), ids)
    model = EASE().fit(data, show_progress=False)
    found = load(saved(model)).user_ids
    assert found.tolist() == ids
    assert found.dtype == model.user_ids.dtype
