"""Presets: complete, valid for the models, and written as they are read."""

import tomllib

import pytest

from reproduction import kernels, presets, published
from reproduction.base import Options
from reproduction.presets import Preset
from safecf.als.kernels import KERNELS
from safecf.models import MODELS

ALL = [(which, data) for which, sets in presets.read().items() for data in sets]


@pytest.mark.parametrize(("which", "data"), ALL)
def test_every_preset_is_valid_for_its_model(which, data):
    found = presets.load(data, which)
    assert found
    for each in found.values():
        model = MODELS[each.model](**each.options)
        assert each.found
        assert set(each.options) <= set(model.get_params())
        if "iterations" in model.get_params():
            assert {"factors", "iterations"} <= set(each.options)


def test_all_that_the_paper_has_a_number_for_is_there():
    for data, models in published.TABLE_1.items():
        missing = set(models) - set(presets.load(data, "paper"))
        assert missing <= ({"Mult-VAE"} if data != "ml-1m" else set())
    assert set(published.CODE["ml-1m"]) <= set(presets.load("ml-1m", "paper"))
    assert {"iALS", "ERM-MF", "SAFER2", "EASE", "Mult-VAE"} <= set(presets.load("ml-1m", "tuned"))


def test_kernels_differ_in_kernel_and_bandwidth_alone():
    published = presets.load("ml-1m", "paper")["SAFER2"]
    _, *found = kernels.models(Options("ml-1m"))
    assert {each.options["kernel"] for each in found} == set(KERNELS)
    for each in found:
        for option, value in published.options.items():
            assert each.options[option] == value or option in ("kernel", "bandwidth")


def test_tiny_is_small():
    for each in presets.load("tiny", "paper").values():
        assert each.options.get("factors", 1) <= 4
        assert each.options.get("iterations", 1) <= 2


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="unknown option of A 'factor'"):
        Preset("A", "IALS", {"factor": 3}, "by hand")
    with pytest.raises(ValueError, match="regularization"):
        Preset("A", "IALS", {"regularization": -1.0}, "by hand")


def test_tiny_has_its_own_presets_if_there_are_any(tmp_path):
    found = Preset("SAFER2", "SAFER2", {"factors": 6, "iterations": 1}, "a test")
    presets.update(tmp_path / "mine.toml", "tiny", [("tuned", found)])
    known = presets.load("tiny", "tuned", tmp_path / "mine.toml")
    assert known["SAFER2"] == found
    assert known["iALS"] == presets.load("tiny", "tuned")["iALS"]


@pytest.mark.parametrize(
    ("data", "which", "name", "said"),
    [
        ("gowalla", "tuned", "SAFER2", "safecf reproduce tuning --data gowalla --presets FILE"),
        ("tiny", "tuned", "SAFER2", "safecf reproduce tuning --data tiny --presets FILE"),
        ("gowalla", "paper", "SAFER2", "the authors publish none"),
        ("ml-1m", "paper", "SAFER2", "copy them from .*presets.toml"),
        ("gowalla", "tuned", "EASE", "tuning does not look for them"),
        ("msd", "tuned", "SAFER2", "tuning does not look for them"),
        ("msd", "tuned", "SAFER2", "a copy of presets.toml"),
    ],
)
def test_missing_presets_say_how_to_find_them(tmp_path, data, which, name, said):
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(ValueError, match=said) as wrong:
        presets.require(data, which, [name], tmp_path / "mine.toml")
    assert "mine.toml" in str(wrong.value)
    assert ("reproduce tuning" in str(wrong.value)) == ("reproduce tuning" in said)


def test_a_file_is_written_as_it_is_read(tmp_path):
    everything = presets.read()
    assert tomllib.loads(presets.dump(everything)) == everything
    name = 'SAFER2, "mine" \\ yours'
    found = Preset(name, "SAFER2", {"factors": 8, "kernel": "uniform"}, 'a "test"')
    presets.update(tmp_path / "mine.toml", "gowalla", [("grid", found)])
    assert presets.load("gowalla", "grid", tmp_path / "mine.toml") == {name: found}
    assert presets.load("ml-1m", "paper", tmp_path / "mine.toml") == presets.load("ml-1m", "paper")


def test_bad_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        presets.read(tmp_path / "nowhere.toml")
    for content in (b"x = ", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.toml: .* TOML file"):
            presets.read(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        ("[tune.ml-1m.A]", "[tune]", "did you mean 'tuned'"),
        ("tuned = 3", "[tuned]", "3 has to be a table"),
        ("[tuned.ml1m.A]", "[tuned.ml1m]", "did you mean 'ml-1m'"),
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
def test_wrong_presets_are_named_with_their_place(tmp_path, content, where, said):
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(ValueError, match=r"bad\.toml") as wrong:
        presets.load("ml-1m", "paper", tmp_path / "bad.toml")
    assert where in str(wrong.value)
    assert said in str(wrong.value)


def test_a_model_without_chance_runs_once():
    ease, ials = (presets.load("ml-1m", "paper")[name] for name in ("EASE", "iALS"))
    assert list(ease.seeds(5)) == [0]
    assert list(ials.seeds(5)) == [0, 1, 2, 3, 4]


def test_the_published_table_has_its_columns():
    found = published.reported("ml-20m")["SAFER2"]
    assert found[("recall@50", 1.0)] == 0.5308
    assert found[("recall@100", 0.3)] == 0.3342
    assert published.reported("gowalla") == {}
