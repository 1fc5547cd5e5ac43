"""Presets: valid for their models, and errors that name the file and the place in it."""

import subprocess
import sys

import pytest

from safecf.models import MODELS
from safecf.models.presets import Preset, presets, read
from tests.helpers import refused

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


def test_unknown_names_are_refused():
    for arguments, words in (
        (["ml1m"], "unknown data set 'ml1m': did you mean 'ml-1m'"),
        (["ml-1m", "tune"], "unknown set of presets 'tune': did you mean 'tuned'"),
        (["msd"], "there are no 'tuned' presets for msd; try which='paper'"),
        (["gowalla", "paper"], "try which='tuned' or which='sized'"),
    ):
        with refused(ValueError, words):
            presets(*arguments)


def test_wrong_options_are_refused():
    with refused(ValueError, "unknown option of A 'factor'"):
        Preset("A", "IALS", {"factor": 3}, "by hand")
    with refused(ValueError, "regularization"):
        Preset("A", "IALS", {"regularization": -1.0}, "by hand")


MODEL = "[tuned.ml-1m.A]\nfound = ''\nmodel = 'IALS'\n"
BAD = [
    (b"x = ", "TOML file"),
    (b"\xff\xfe", "TOML file"),
    (b"[tune.ml-1m.A]", "[tune]", "did you mean 'tuned'"),
    (b"tuned = 3", "[tuned]", "3 has to be a table"),
    (b"[tuned]\nml-1m = 3", "[tuned.ml-1m]", "3 has to be a table"),
    (b"[tuned.ml-1m]\niALS = 3", '[tuned.ml-1m."iALS"]', "3 has to be a table"),
    (MODEL.encode(), '"A"]', "options is missing"),
    (b"[tuned.ml-1m.A]\noptions = {}\nfound = ''", '"A"]', "model is missing"),
    (f"{MODEL}options = 1".encode(), '"A"]', "options = 1 has to"),
    (f"{MODEL.replace('IALS', 'IAS')}\noptions = {{}}".encode(), '"A"]', "unknown model 'IAS'"),
    (f"{MODEL}options = {{ factors = 'x' }}".encode(), '"A"]', "factors='x' has to be an integer"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_files_are_named_with_the_place(tmp_path, case):
    content, *words = BAD[case]
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.toml") as wrong:
        read(tmp_path / "bad.toml")
    assert all(word in str(wrong.value) for word in words)
    with refused(FileNotFoundError, "nowhere"):
        read(tmp_path / "nowhere.toml")


def test_presets_are_not_imported_with_the_models():
    code = "import sys, safecf.models; sys.exit('safecf.models.presets' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
