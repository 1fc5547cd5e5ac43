"""Damaged and hostile files do nothing but raise one clear error."""

import json
import struct

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import safecf
from safecf import SAFER2, FileFormatError
from safecf.models.files import FORMAT
from tests.models.saved import (
    DATA,
    GOOD,
    load,
    put_together,
    raw,
    taken_apart,
    with_arrays,
    with_header,
)


def changed(record, **values):
    return record | values


def without(record, name):
    return {key: value for key, value in record.items() if key != name}


def option(**values):
    return with_header(lambda header: changed(header, options=header["options"] | values))


def fitted(**values):
    return with_header(lambda header: changed(header, fitted=header["fitted"] | values))


def epoch(**values):
    history = taken_apart()[1]["fitted"]["history"]
    return fitted(history=[history[0] | values, history[1]])


def user_counts(value):
    return with_arrays(lambda arrays: changed(arrays, user_counts=np.full(12, float(value))))


def groups(names, weights):
    named = {} if names is None else {"group_names": np.array(names, dtype=np.int64)}
    return with_arrays(lambda arrays: arrays | named | {"group_weights": np.array(weights)})


NOT_FINITE = np.full((12, 3), np.nan, dtype=np.float32)

HOSTILE = {
    "empty": (b"", "damaged"),
    "short": (b"abc", "damaged"),
    "text": (b"this is not a model at all, it is a text file", "damaged"),
    "a pickle": (b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.", "damaged"),
    "an npz": (b"PK\x03\x04" + bytes(100), "damaged"),
    "truncated header": (GOOD[:100], "damaged"),
    "truncated arrays": (GOOD[:-1], "damaged"),
    "trailing bytes": (GOOD + b"x", "damaged"),
    "huge header": (struct.pack("<Q", 2**63) + GOOD[8:], "damaged"),
    "negative header": (struct.pack("<q", -1) + GOOD[8:], "damaged"),
    "huge array": (
        raw({"a": {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 2**62]}}),
        "damaged",
    ),
    "huge empty array": (
        raw({"a": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}),
        "damaged|not written by safecf",
    ),
    "unknown dtype": (
        raw({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
        "damaged",
    ),
    "unknown to numpy": (
        raw({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        "damaged",
    ),
    "overlap": (
        raw(
            {
                "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            },
            bytes(4),
        ),
        "damaged",
    ),
    "nested header": (raw(b'{"__metadata__":' + b"[" * 10**5), "damaged"),
    "no metadata": (safetensors.numpy.save(taken_apart()[0]), "not written by safecf"),
    "foreign metadata": (
        safetensors.numpy.save(taken_apart()[0], metadata={"format": "pt"}),
        "not written by safecf",
    ),
    "wrong JSON": (with_header(lambda header: "{'format': 1}"), "header is damaged"),
    "NaN": (with_header(lambda header: '{"format": NaN}'), "header is damaged"),
    "nested JSON": (with_header(lambda header: "[" * 10**5), "header is damaged"),
    "long number": (with_header(lambda header: '{"format": 1' + "0" * 10**4 + "}"), "damaged"),
    "a list": (with_header(lambda header: "[]"), "header is damaged"),
    "no format": (with_header(lambda header: without(header, "format")), "'format' is None"),
    "newer format": (
        with_header(lambda header: changed(header, format=FORMAT + 1)),
        "newer version",
    ),
    "format 0": (with_header(lambda header: changed(header, format=0)), "its format is 0"),
    "format true": (with_header(lambda header: changed(header, format=True)), "'format' is True"),
    "unknown kind": (with_header(lambda header: changed(header, kind="virus")), "it is a virus"),
    "long kind": (with_header(lambda header: changed(header, kind="k" * 10**6)), "it is a kkk"),
    "unknown class": (
        with_header(lambda header: changed(header, **{"class": "os.system"})),
        "it holds a 'os.system', known are IALS",
    ),
    "a class that is no string": (
        with_header(lambda header: changed(header, **{"class": ["SAFER2"]})),
        "'class' is",
    ),
    "no options": (with_header(lambda header: without(header, "options")), "'options' is None"),
    "unknown option": (option(shell="rm"), "SAFER2 has no option 'shell'"),
    "not an option": (option(user_factors=[[1]]), "has no option 'user_factors'"),
    "ill-typed option": (option(factors="3"), "factors='3' has to be an integer"),
    "nested option": (option(tail={"a": [0.3]}), "tail="),
    "option out of range": (option(tail=7), "tail=7"),
    "unknown kernel": (option(kernel="__import__"), "unknown kernel"),
    "unknown backend": (option(backend="os"), "unknown backend"),
    "seed": (option(random_state="0"), "random_state='0'"),
    "no fitted": (with_header(lambda header: without(header, "fitted")), "'fitted' is None"),
    "no seed": (fitted(seed=None), "'seed' is None"),
    "negative seed": (fitted(seed=-1), "contradict"),
    "huge seed": (fitted(seed=10**400), "'seed' is 1000"),
    "shape": (fitted(shape=[12]), "contradict"),
    "shape of strings": (fitted(shape=["12", "8"]), "contradict"),
    "larger shape": (fitted(shape=[12, 9]), "contradict"),
    "no users": (fitted(num_users=0), "contradict"),
    "too many users": (fitted(num_users=13), "contradict"),
    "endless users": (fitted(num_users="inf"), "contradict"),
    "uncounted users": (fitted(num_users="nan"), "contradict"),
    "too many items": (fitted(num_items=9), "contradict"),
    "no history": (fitted(history=None), "'history' is None"),
    "history of numbers": (fitted(history=[1, 2]), "history is damaged"),
    "ill-typed history": (epoch(objective="low"), "'objective' is 'low'"),
    "seconds": (epoch(seconds={"users": []}), "'users' is"),
    "missing array": (with_arrays(lambda arrays: without(arrays, "user_mass")), "is missing"),
    "wrong dtype": (
        with_arrays(
            lambda arrays: changed(arrays, item_factors=arrays["item_factors"].astype(float))
        ),
        "'item_factors' is float64",
    ),
    "integers": (
        with_arrays(lambda arrays: changed(arrays, user_factors=np.zeros((12, 3), dtype=np.int8))),
        "'user_factors' is int8",
    ),
    "wrong rank": (
        with_arrays(lambda arrays: changed(arrays, user_factors=arrays["user_factors"].ravel())),
        r"\[36\]",
    ),
    "wrong width": (
        with_arrays(
            lambda arrays: changed(arrays, item_factors=arrays["item_factors"][:, :2].copy())
        ),
        r"\[8, 2\]",
    ),
    "wrong length": (
        with_arrays(lambda arrays: changed(arrays, user_mass=arrays["user_mass"][1:].copy())),
        r"\[11\]",
    ),
    "no rows": (
        with_arrays(
            lambda arrays: changed(
                arrays,
                user_factors=arrays["user_factors"][:0],
                user_mass=arrays["user_mass"][:0],
                user_weights=arrays["user_weights"][:0],
                user_counts=arrays["user_counts"][:0],
            )
        ),
        "contradict",
    ),
    "not finite": (
        with_arrays(lambda arrays: changed(arrays, user_factors=NOT_FINITE)),
        "not finite",
    ),
    "negative counts": (user_counts(-1), "contradict"),
    "huge counts": (user_counts(1e300), "contradict"),
    "no counts": (user_counts(0), "contradict"),
    "groups without names": (groups(None, [0.1, 0.5]), "groups are damaged"),
    "groups with too many names": (groups([1, 2, 3], [0.1, 0.5]), "'group_names' are damaged"),
    "the same group twice": (groups([1, 1], [0.1, 0.5]), "'group_names' are damaged"),
    "one group": (groups([1], [0.3]), "groups are damaged"),
    "no group": (groups([], []), "groups are damaged"),
    "negative groups": (groups([1, 2], [-0.1, 0.7]), "groups are damaged"),
    "groups that are not finite": (groups([1, 2], [np.nan, 0.7]), "not finite"),
    "negative popularity": (
        with_arrays(lambda arrays: changed(arrays, item_popularity=-arrays["item_popularity"])),
        "popularity of its items is negative",
    ),
    "popularity of fewer items": (
        with_arrays(lambda arrays: changed(arrays, item_popularity=np.zeros(7, dtype=np.float32))),
        r"'item_popularity' is float32\[7\]",
    ),
    "negative mass": (
        with_arrays(lambda arrays: changed(arrays, user_mass=-arrays["user_mass"])),
        "contradict",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case, tmp_path):
    content, message = HOSTILE[case]
    with pytest.raises(FileFormatError, match=f"^the file: .*({message})"):
        load(content)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"model\.safetensors: ") as caught:
        safecf.load(tmp_path / "model")
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_checkpoints(case, tmp_path):
    (tmp_path / "run.safetensors").write_bytes(HOSTILE[case][0])
    model = SAFER2(factors=3, iterations=3, random_state=0)
    with pytest.raises(FileFormatError, match=r"run\.safetensors: "):
        model.fit(DATA, show_progress=False, resume=tmp_path / "run")
    assert model.user_factors is None


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.safetensors"
    SAFER2(factors=3, iterations=2, random_state=0).fit(DATA, show_progress=False, checkpoint=path)
    return path.read_bytes()


HOSTILE_CHECKPOINTS = {
    "endless": ({"epoch": 10**15}, {}, "history is damaged"),
    "epoch 0": ({"epoch": 0, "history": []}, {}, "history is damaged"),
    "one epoch short": ({"epoch": 1}, {}, "history is damaged"),
    "negative seed": ({"seed": -1}, {}, "history is damaged"),
    "no xi": ({"xi": None}, {}, "'xi' is None"),
    "options": ({"options": []}, {}, "'options' is"),
    "data": ({"data": 7}, {}, "'data' is 7"),
    "not finite": ({}, {"users": np.full((12, 3), np.inf, dtype=np.float32)}, "not finite"),
    "integers": ({}, {"items": np.zeros((8, 3), dtype=np.int32)}, "'items' is int32"),
    "weights": ({}, {"weights": np.zeros(11)}, r"'weights' is float64\[11\]"),
    "items": ({}, {"items": np.zeros((9, 3), dtype=np.float32)}, "8 with 3 here"),
    "nested option": ({"options": {"tail": {"a": [1]}}}, {}, "tail="),
    "long class": ({"class": "A" * 10**5}, {}, "model AAA"),
}


@pytest.mark.parametrize("case", HOSTILE_CHECKPOINTS)
def test_checkpoints_that_were_tampered_with(case, checkpoint, tmp_path):
    header_changes, array_changes, message = HOSTILE_CHECKPOINTS[case]
    arrays, header = taken_apart(checkpoint)
    (tmp_path / "run.safetensors").write_bytes(
        put_together(arrays | array_changes, header | header_changes)
    )
    model = SAFER2(factors=3, iterations=3, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(DATA, show_progress=False, resume=tmp_path / "run")
    assert model.user_factors is None


def check_loads_or_refuses(content):
    try:
        model = load(content)
    except FileFormatError:
        return
    assert isinstance(model, SAFER2)
    assert model.fold_in(DATA[:0]).shape == (0, 3)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4))
def test_flipped_bytes(flips):
    content = bytearray(GOOD)
    for position, value in flips:
        content[position] = value
    check_loads_or_refuses(bytes(content))


@settings(max_examples=100)
@given(st.integers(0, len(GOOD)), st.binary(max_size=20))
def test_truncated_and_extended(length, more):
    check_loads_or_refuses(GOOD[:length] + more)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=50)
@given(JSON)
def test_any_header(header):
    arrays, good = taken_apart()
    candidates = [header] + [changed(good, **{key: header}) for key in good]
    for candidate in candidates:
        check_loads_or_refuses(put_together(arrays, json.dumps(candidate)))


@settings(max_examples=150)
@given(st.data())
def test_flipped_bytes_of_a_checkpoint(tmp_path_factory, checkpoint, data):
    content = bytearray(checkpoint)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "flipped.safetensors"
    path.write_bytes(content)
    model = SAFER2(factors=3, iterations=2, random_state=0)
    try:
        model.fit(DATA, show_progress=False, resume=path)
    except (FileFormatError, ValueError, safecf.SolveError):
        assert model.user_factors is None
