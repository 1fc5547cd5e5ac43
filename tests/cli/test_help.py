"""The command line itself: help, version, completion, and the names of options."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import safecf
from safecf import datasets
from safecf.models import MODELS

DEFAULTS = json.loads((Path(__file__).parents[1] / "golden" / "defaults.json").read_text())
COMMANDS = DEFAULTS["commands"]


def test_version(done):
    assert done("--version") == f"safecf {safecf.__version__}\n"


def test_nothing_heavy_is_imported_for_the_help():
    heavy = "{'numpy', 'scipy', 'pyarrow', 'torch'} & {*sys.modules}"
    code = f"import sys, safecf.cli.commands; found = {heavy}; sys.exit(str(found) if found else 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_no_command_shows_the_help(run):
    code, out, _ = run()
    assert code in (0, 2)  # 0 in Click before 8.2
    assert "Exit codes: 0 done; 1 safecf doctor found" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_own_help_with_an_example(run, done, command):
    words = command.split()[1:]
    out = done(*words, "--help")
    assert command in out.split("For example:")[1]
    assert "<bool>" not in out  # a flag takes no value
    assert "list[" not in out
    code, out, err = run(*words, "--no-such-option=3")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith(f"; see {command} --help\n")


@pytest.fixture
def completed(done, tmp_path, monkeypatch):
    """Return a function that returns what the shell offers behind some words."""
    (tmp_path / "folder").mkdir()
    for name in ("mine.safetensors", "ml-20m.csv", "mine.csv"):
        (tmp_path / name).touch()
    monkeypatch.setenv("_SAFECF_COMPLETE", "complete_bash")

    def offered(typed):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
        return done().split()

    return offered


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("safecf eva", ["evaluate"]),
        ("safecf fit ml", ["ml-1m", "ml-20m", "ml-20m-like", "ml-20m.csv"]),
        ("safecf fit --model safer2", ["safer2", "safer2pp", "safer2cg"]),
        ("safecf evaluate demo -m m", ["multvae", "mine.safetensors"]),
        ("safecf evaluate demo --metric rec", ["recall@20"]),
        ("safecf evaluate demo --split t", ["temporal"]),
        ("safecf similar mi", ["mine.safetensors"]),
        ("safecf export mine.safetensors --format u", ["usearch"]),
        ("safecf data split folder", ["folder/"]),
    ],
)
def test_shells_complete_names_and_files(completed, typed, offered):
    assert completed(typed) == offered


def test_the_names_of_models_and_data_sets_are_the_registered_ones(completed):
    """They are repeated in the command line, which imports neither for its help."""
    names = {each for each in completed("safecf fit --model ") if "." not in each}
    assert names - {"folder/"} == {name.lower() for name in MODELS}
    assert {*datasets.DATASETS} <= {*completed("safecf fit ")}


# By command: the function whose arguments its options are, and options with another name.
SAME = {
    "recommend": ("safecf.batch.recommend_to_file", {}),
    "similar": ("SAFER2.similar_items_frame", {}),
    "explain": ("SAFER2.explain_frame", {}),
    "export": ("safecf.approximate.export", {}),
    "serve": ("safecf.serving.Settings", {}),
    "fit": ("safecf.datasets.read", {}),
    "evaluate": ("safecf.evaluate", {}),
    "tune": ("safecf.tune", {"tail": "level", "range": "space"}),
}
NO_OPTIONS = {"user_items", "data", "show_progress", "settings", "name", "batch", "on", "tails"}
NO_OPTIONS |= {"metrics", "items"}


@pytest.mark.parametrize("command", SAME)
def test_options_are_the_arguments_of_the_library(command):
    """With their defaults, or what the help says of them where the library has them."""
    function, others = SAME[command]
    arguments, options = DEFAULTS["functions"][function], COMMANDS[f"safecf {command}"]
    for option, default in options.items():
        name = option.split(" / ")[0].removeprefix("--").replace("-", "_")
        argument = others.get(name, name)
        if argument in arguments and argument != "header":
            known = arguments[argument]
            known = " ".join(map(str, known)) if isinstance(known, list) else known
            assert None in (default, known) or str(default) == str(known), option
    typed = {option.split(" / ")[0].removeprefix("--").replace("-", "_") for option in options}
    assert {*arguments} - {others.get(name, name) for name in typed} <= NO_OPTIONS
