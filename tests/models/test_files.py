"""Model files: what they hold, and how they are replaced."""

import copy
import io
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecf
from safecf import SAFER2
from safecf.models.files import FORMAT
from tests.models.runs import fit, make
from tests.models.saved import DATA, good_model, load, put_together, taken_apart


def test_any_safetensors_reader_reads_it():
    arrays, header = taken_apart()
    model = good_model()
    np.testing.assert_array_equal(arrays["user_factors"], model.user_factors)
    np.testing.assert_array_equal(arrays["item_factors"], model.item_factors)
    others = {"user_weights", "user_mass", "user_counts", "item_popularity"}
    assert arrays.keys() == {"user_factors", "item_factors", *others}
    assert (header["format"], header["kind"], header["class"]) == (FORMAT, "model", "SAFER2")
    assert header["options"] == model.get_params()
    assert [record["epoch"] for record in header["fitted"]["history"]] == [1, 2]


def test_header_is_strict_json_even_with_infinities(tmp_path):
    model = SAFER2(factors=3, iterations=1, bandwidth=np.inf, random_state=0)
    model.fit(DATA, show_progress=False).save(tmp_path / "model")
    assert b"Infinity" not in (tmp_path / "model.safetensors").read_bytes()
    assert safecf.load(tmp_path / "model").bandwidth == np.inf


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors: .* seen from .*; check the"):
        safecf.load(tmp_path / "model")
    with pytest.raises(IsADirectoryError, match="is a folder; give the path of a file"):
        safecf.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        good_model().save(tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder; give the path of a file"):
        good_model().save(tmp_path.rename(tmp_path.with_suffix(".safetensors")))


@pytest.mark.parametrize("name", ["", ".", "..", "folder/", "folder/..", ".safetensors", "a\0b"])
def test_paths_that_name_no_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="does not name a file; give a path such as"):
        good_model().save(name)
    with pytest.raises(ValueError, match="does not name a file; give a path such as"):
        safecf.load(name)
    for argument in ("checkpoint", "resume"):
        with pytest.raises(ValueError, match="does not name a file"):
            SAFER2(factors=3).fit(DATA, show_progress=False, **{argument: name})
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("file", [None, 3, b"model"])
def test_what_is_no_file_at_all(file):
    with pytest.raises(TypeError, match="is neither a path nor a binary file; try"):
        good_model().save(file)
    with pytest.raises(TypeError, match="is neither a path nor a binary file; try"):
        safecf.load(file)
    for argument in ("checkpoint", "resume") if file is not None else ():
        message = rf"{argument}=b?'?\w+'? is no path; try {argument}='model\.safetensors'"
        with pytest.raises(TypeError, match=message):
            SAFER2(factors=3).fit(DATA, show_progress=False, **{argument: file})


def test_files_open_for_text():
    with pytest.raises(TypeError, match="open for text, not for bytes; open it as 'rb'"):
        safecf.load(io.StringIO("text"))
    with pytest.raises(TypeError, match="open for text, not for bytes; open it as 'wb'"):
        good_model().save(io.StringIO())


def test_names_that_are_too_long(tmp_path):
    for use in (safecf.load, good_model().save):
        with pytest.raises(ValueError, match=r"…. is too long for the name of a file; give"):
            use(tmp_path / ("x" * 300))
    longest = tmp_path / ("x" * (255 - len(".safetensors")))
    good_model().save(longest)
    assert safecf.load(longest).is_fitted


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    good_model().save(path)
    before = path.read_bytes()

    def fail(*rest):
        raise OSError(28, "No space left on device")

    other = SAFER2(factors=2, iterations=1).fit(DATA, show_progress=False)
    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, fail)
            with pytest.raises(OSError, match="No space left on device; what was there before"):
                other.save(path)
        assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
        assert path.read_bytes() == before


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "v1.safetensors").write_bytes(b"old")
    link = tmp_path / "current.safetensors"
    link.symlink_to(tmp_path / "models" / "v1.safetensors")
    good_model().save(link)
    assert link.is_symlink()
    assert safecf.load(link).factors == 3


def test_files_get_the_usual_permissions(tmp_path):
    good_model().save(tmp_path / "model")
    (tmp_path / "plain").touch()
    mode = (tmp_path / "model.safetensors").stat().st_mode
    assert mode == (tmp_path / "plain").stat().st_mode


def test_options_that_were_spoilt_after_fit_are_not_saved(tmp_path):
    model = good_model()
    model.tail = 7
    with pytest.raises(ValueError, match="tail=7"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_whole_numbers_are_floats_too():
    """JSON has one kind of number, and other writers leave out the point."""
    arrays, header = taken_apart()
    header["fitted"]["history"][0]["objective"] = 1
    assert load(put_together(arrays, header)).history[0].objective == 1.0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_not_read_and_hold_no_checkpoints(data, tmp_path):
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"pipe\.safetensors: it is a pipe, not a file"):
        safecf.load(pipe)
    with pytest.raises(OSError, match=r"pipe\.safetensors: it is a pipe, not a file"):
        fit(make(), data, checkpoint=pipe)


def test_links_in_a_circle_are_no_targets(data, tmp_path):
    circle = tmp_path / "circle.safetensors"
    circle.symlink_to(circle)
    model = fit(make(), data)
    with pytest.raises(OSError, match=r"links lead in a circle.*circle\.safetensors"):
        model.save(circle)
    with pytest.raises(OSError, match=r"links lead in a circle.*circle\.safetensors"):
        fit(make(), data, checkpoint=circle)
    assert circle.is_symlink()


def test_names_that_no_file_can_have_are_refused():
    for name in ("a\0b", "", "a\ud800"):
        with pytest.raises(ValueError, match=r"does not name a file; give a path such as"):
            safecf.load(name)


def test_factors_that_do_not_fit_are_not_saved(tmp_path):
    model = copy.deepcopy(good_model())
    columns = model.user_factors.shape[1]
    model.factors = 999
    with pytest.raises(ValueError, match=rf"factors=999, while .* trained with {columns}; fit it"):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(2**70), 2**70) | st.floats(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES | st.sampled_from(["inf", (1, 2), {3: 4}, b"x"])))
def test_the_provenance_comes_back_as_it_was_or_is_refused(provenance):
    model, file = copy.copy(good_model()), io.BytesIO()
    model.provenance = provenance
    try:
        model.save(file)
    except (TypeError, ValueError):  # whose messages the next test reads
        return
    file.seek(0)
    assert repr(safecf.load(file).provenance) == repr(provenance)


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        ({"a": [{"b": "nan"}]}, r"provenance\['a'\]\[0\]\['b'\] is the text 'nan', which is read"),
        ({3: 4}, "provenance has the key 3, not a text; try '3'"),
        (
            {"a": (1, 2)},
            r"provenance\['a'\] is of type tuple, which a file cannot hold; give dicts",
        ),
        ("tuned", "provenance is 'tuned'; give a dict, or None"),
    ],
)
def test_a_provenance_that_would_change_is_refused(provenance, message):
    model = copy.copy(good_model())
    model.provenance = provenance
    with pytest.raises((TypeError, ValueError), match=message):
        model.save(io.BytesIO())
