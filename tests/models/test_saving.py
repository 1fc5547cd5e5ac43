"""Saving and loading: which paths and values are taken, and how files are replaced."""

import copy
import io
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecf
from safecf import SAFER2
from tests.helpers import refused
from tests.models.saved import DATA, SMALL, load, saved, trained


@pytest.fixture
def model():
    return copy.deepcopy(trained("plain"))


def fit(**options):
    return SAFER2(**SMALL).fit(DATA, show_progress=False, **options)


def test_missing_files(model, tmp_path):
    with refused(FileNotFoundError, "model.safetensors: there is no such file, seen from"):
        safecf.load(tmp_path / "model")
    with refused(IsADirectoryError, "is a folder; give the path of a file"):
        safecf.load(tmp_path)
    with refused(FileNotFoundError, "there is no folder"):
        model.save(tmp_path / "nowhere" / "model")
    with refused(FileNotFoundError, "there is no folder"):
        fit(checkpoint=tmp_path / "nowhere" / "run")
    with refused(FileNotFoundError, "no checkpoint to resume from", "nothing.safetensors"):
        fit(resume=tmp_path / "nothing")
    folder = tmp_path.rename(tmp_path.with_suffix(".safetensors"))
    for call in (model.save, lambda path: fit(checkpoint=path)):
        with refused(IsADirectoryError, "is a folder"):
            call(folder)


NAMES = ["", ".", "..", "folder/", "folder/..", ".safetensors", "a\0b", "a\ud800"]


@pytest.mark.parametrize("name", NAMES)
def test_paths_that_name_no_file(model, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    calls = [
        lambda: model.save(name),
        lambda: safecf.load(name),
        lambda: fit(checkpoint=name),
        lambda: fit(resume=name),
    ]
    for call in calls:
        with refused(ValueError, "does not name a file; give a path such as"):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_is_no_file_at_all(model):
    for file in (None, 3, b"model"):
        for call in (model.save, safecf.load):
            with refused(TypeError, "is neither a path nor a binary file; try"):
                call(file)
        for argument in ("checkpoint", "resume") if file is not None else ():
            with refused(TypeError, f"{argument}={file!r} is no path; try {argument}='model."):
                fit(**{argument: file})
    for call, mode in ((safecf.load, "rb"), (model.save, "wb")):
        with refused(TypeError, f"open for text, not for bytes; open it as '{mode}'"):
            call(io.StringIO("text"))


def test_names_that_are_too_long(model, tmp_path):
    for call in (safecf.load, model.save):
        with refused(ValueError, "is too long for the name of a file; give"):
            call(tmp_path / ("x" * 300))
    longest = tmp_path / ("x" * (255 - len(".safetensors")))
    model.save(longest)
    assert safecf.load(longest).is_fitted


def test_saving_through_a_link_keeps_the_link(model, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "v1.safetensors").write_bytes(b"old")
    link = tmp_path / "current.safetensors"
    link.symlink_to(tmp_path / "models" / "v1.safetensors")
    model.save(link)
    assert link.is_symlink()
    assert safecf.load(link).factors == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_not_read_and_hold_no_checkpoints(tmp_path):
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    for call in (lambda: safecf.load(pipe), lambda: fit(checkpoint=pipe)):
        with refused(OSError, "pipe.safetensors: it is a pipe, not a file"):
            call()


HALF = np.array(["\ud800", *"abcdefghijk"], dtype=object)
NAN = np.full((12, 3), np.nan, dtype=np.float32)
SPOILT = [
    ("plain", "tail", 7, "tail=7"),
    ("plain", "factors", 999, "factors=999, while the model was trained with 3; fit it"),
    ("plain", "user_ids", HALF, "surrogates not allowed"),
    ("plain", "user_factors", NAN, "not finite"),
    ("network", "user_factors", NAN, "not finite"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), SPOILT)
def test_what_was_spoilt_after_the_fit_is_not_saved(tmp_path, kind, name, value, message):
    model = copy.deepcopy(trained(kind))
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(2**70), 2**70) | st.floats(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES | st.sampled_from(["inf", (1, 2), {3: 4}, b"x"])))
def test_the_provenance_comes_back_as_it_was_or_is_refused(provenance):
    model = copy.copy(trained("plain"))
    model.provenance = provenance
    try:
        content = saved(model)
    except (TypeError, ValueError):  # whose messages the next test reads
        return
    assert repr(load(content).provenance) == repr(provenance)


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        ({"a": [{"b": "nan"}]}, "provenance['a'][0]['b'] is the text 'nan', which is read"),
        ({3: 4}, "provenance has the key 3, not a text; try '3'"),
        ({"a": (1, 2)}, "provenance['a'] is of type tuple, which a file cannot hold; give dicts"),
        ("tuned", "provenance is 'tuned'; give a dict, or None"),
    ],
)
def test_a_provenance_that_would_change_is_refused(model, provenance, message):
    model.provenance = provenance
    with refused((TypeError, ValueError), message):
        saved(model)
