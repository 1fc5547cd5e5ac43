"""Presets in experiments: complete, required by name, turned into cells, and written."""

import pytest

from reproduction import presets, published
from reproduction.base import Options
from reproduction.experiments import kernels
from safecf.als.kernels import KERNELS
from safecf.models.presets import FILE, Preset


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


def test_defaults_have_no_options_but_on_tiny_data():
    models = {"iALS": "IALS", "SAFER2": "SAFER2"}
    assert [each.options for each in presets.defaults("ml-1m", models)] == [{}, {}]
    assert [each.options["factors"] for each in presets.defaults("tiny", models)] == [4, 4]


def test_tiny_has_its_own_presets_if_there_are_any(tmp_path):
    found = Preset("SAFER2", "SAFER2", {"factors": 6, "iterations": 1}, "a test")
    presets.update(tmp_path / "mine.toml", "tiny", [("tuned", found)])
    known = presets.load("tiny", "tuned", tmp_path / "mine.toml")
    assert known["SAFER2"] == found
    assert known["iALS"] == presets.load("tiny", "tuned")["iALS"]


@pytest.mark.parametrize(
    ("data", "which", "name", "message"),
    [
        (
            "gowalla",
            "tuned",
            "SAFER2",
            "python -m reproduction tuning --data gowalla --presets FILE",
        ),
        ("tiny", "tuned", "SAFER2", "python -m reproduction tuning --data tiny --presets FILE"),
        ("gowalla", "paper", "SAFER2", "the authors publish none"),
        ("ml-1m", "paper", "SAFER2", "copy them from .*presets.toml"),
        ("gowalla", "tuned", "EASE", "tuning does not search for them"),
        ("msd", "tuned", "SAFER2", "tuning does not search for them"),
        ("msd", "tuned", "SAFER2", "a copy of .*presets.toml"),
    ],
)
def test_missing_presets_say_how_to_find_them(tmp_path, data, which, name, message):
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(ValueError, match=message) as wrong:
        presets.require(data, which, [name], tmp_path / "mine.toml")
    assert "mine.toml" in str(wrong.value)
    assert ("reproduction tuning" in str(wrong.value)) == ("reproduction tuning" in message)


def test_a_file_is_written_as_it_is_read(tmp_path):
    assert presets.dump(presets.read()) == FILE.read_text(encoding="utf8")
    name = 'SAFER2, "mine" \\ yours'
    found = Preset(name, "SAFER2", {"factors": 8, "kernel": "uniform"}, 'a "test"')
    presets.update(tmp_path / "mine.toml", "gowalla", [("grid", found)])
    assert presets.load("gowalla", "grid", tmp_path / "mine.toml") == {name: found}
    assert presets.load("ml-1m", "paper", tmp_path / "mine.toml") == presets.load("ml-1m", "paper")


def test_unknown_data_in_a_file_are_named_with_their_place(tmp_path):
    entry = "model = 'IALS'\nfound = ''\noptions = {}"
    (tmp_path / "bad.toml").write_text(f"[tuned.ml1m.A]\n{entry}")
    with pytest.raises(ValueError, match=r"bad\.toml, \[tuned\.ml1m\]: .*did you mean 'ml-1m'"):
        presets.load("ml-1m", "paper", tmp_path / "bad.toml")


def test_a_model_without_a_seed_runs_once():
    ease, ials = (presets.load("ml-1m", "paper")[name] for name in ("EASE", "iALS"))
    assert list(presets.seeds(ease, 5)) == [0]
    assert list(presets.seeds(ials, 5)) == [0, 1, 2, 3, 4]


def test_the_published_table_has_its_columns():
    found = published.reported("ml-20m")["SAFER2"]
    assert found[("recall@50", 1.0)] == 0.5308
    assert found[("recall@100", 0.3)] == 0.3342
    assert published.reported("gowalla") == {}
