"""Presets: valid for their models, and errors that name the file and the place in it."""

import subprocess
import sys

import pytest

from safecf.models import MODELS
from safecf.models.presets import Preset, presets, read

ALL = [(which, data) for which, sets in read().items() for data in sets]


@pytest.mark.parametrize(("which", "data"), ALL)
def test_every_preset_makes_a_model(which, data):
    found = presets(data, which)
    assert found
    for name, each in found.items():
        assert each.name == name
        assert each.found
        model = each.make()
        assert type(model) is MODELS[each.model]
        options = model.get_params()
        assert {**options, **each.options} == options
        if "iterations" in options:
            assert {"factors", "iterations"} <= set(each.options)


def test_tuned_presets_are_the_default_and_can_be_overridden():
    found = presets("ml-1m")["SAFER2"]
    assert found == read()["tuned"]["ml-1m"]["SAFER2"]
    model = found.make(factors=8, random_state=0)
    assert (model.factors, model.random_state) == (8, 0)
    assert model.bandwidth == found.options["bandwidth"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ml1m"], "unknown data set 'ml1m': did you mean 'ml-1m'"),
        (["ml-1m", "tune"], "unknown set of presets 'tune': did you mean 'tuned'"),
        (["msd"], "there are no 'tuned' presets for msd; try which='paper'"),
        (["gowalla", "paper"], "try which='tuned' or which='sized'"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        presets(*arguments)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="unknown option of A 'factor'"):
        Preset("A", "IALS", {"factor": 3}, "by hand")
    with pytest.raises(ValueError, match="regularization"):
        Preset("A", "IALS", {"regularization": -1.0}, "by hand")


def test_bad_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere.toml")
    for content in (b"x = ", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.toml: .* TOML file"):
            read(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("content", "where", "message"),
    [
        ("[tune.ml-1m.A]", "[tune]", "did you mean 'tuned'"),
        ("tuned = 3", "[tuned]", "3 has to be a table"),
        ("[tuned]\nml-1m = 3", "[tuned.ml-1m]", "3 has to be a table"),
        ("[tuned.ml-1m]\niALS = 3", '[tuned.ml-1m."iALS"]', "3 has to be a table"),
        ("[tuned.ml-1m.A]\nmodel = 'IALS'\nfound = ''", '"A"]', "options is missing"),
        ("[tuned.ml-1m.A]\noptions = {}\nfound = ''", '"A"]', "model is missing"),
        ("[tuned.ml-1m.A]\nmodel = 'IALS'\nfound = ''\noptions = 1", '"A"]', "options = 1 has to"),
        ("[tuned.ml-1m.A]\nmodel = 'IAS'\nfound = ''\noptions = {}", '"A"]', "unknown model 'IAS'"),
        (
            "[tuned.ml-1m.A]\nmodel = 'IALS'\nfound = ''\noptions = { factors = 'x' }",
            '"A"]',
            "factors='x' has to be an integer",
        ),
    ],
)
def test_wrong_presets_are_named_with_their_place(tmp_path, content, where, message):
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(ValueError, match=r"bad\.toml") as wrong:
        read(tmp_path / "bad.toml")
    assert where in str(wrong.value)
    assert message in str(wrong.value)


def test_presets_are_not_imported_with_the_models():
    code = "import sys, safecf.models; sys.exit('safecf.models.presets' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
