"""The command line itself: help, version, and how fast it starts."""

import subprocess
import sys

import pytest

import safecf
from safecf.cli import command_options
from safecf.cli.commands import app
from safecf.cli.data import app as data
from safecf.cli.doctor import doctor
from safecf.cli.evaluate import evaluate
from safecf.cli.fit import fit
from safecf.cli.recommend import recommend
from safecf.cli.running import as_options, options_of
from safecf.cli.serve import serve
from safecf.data.datasets.loading import DATASETS
from safecf.data.datasets.synthetic import SHAPES
from safecf.models import MODELS


def test_version(run):
    assert run("--version") == (0, f"safecf {safecf.__version__}\n", "")


def test_nothing_heavy_is_imported_for_the_help():
    heavy = "{'numpy', 'scipy', 'pyarrow', 'torch'} & {*sys.modules}"
    code = f"import sys, safecf.cli.commands; found = {heavy}; sys.exit(str(found) if found else 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_names_in_the_help_are_the_registered_ones():
    assert tuple(DATASETS) == command_options.DATASETS
    assert tuple(SHAPES) == command_options.SHAPES
    assert sorted(command_options.MODELS) == sorted(name.lower() for name in MODELS)


def all_commands():
    """Return the words of every command."""
    groups = {name: [] for name in ("", "data")}
    for each in (*app.registered_commands, *data.registered_commands):
        group = "data" if each in data.registered_commands else ""
        groups[group].append(each.name or each.callback.__name__)
    return [[name] for name in groups[""]] + [["data", name] for name in groups["data"]]


@pytest.mark.parametrize("command", all_commands(), ids=" ".join)
def test_every_command_has_its_own_help_with_an_example(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert f"safecf {' '.join(command)}" in out.split("For example:")[1]
    assert "<bool>" not in out  # a flag takes no value
    assert "list[" not in out


@pytest.mark.parametrize("command", all_commands(), ids=" ".join)
def test_wrong_use_of_every_command_is_one_line(run, command):
    for arguments in (["--no-such-option"], ["--no-such-option=3"]):
        code, out, err = run(*command, *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert err.endswith(f"; see safecf {' '.join(command)} --help\n")
    code, out, err = run("evaluat")
    assert (code, out) == (2, "")
    assert err.startswith("safecf: no such command 'evaluat'")


def test_no_command_shows_the_help(run):
    code, out, _ = run()
    assert code in (0, 2)  # 0 in Click before 8.2
    assert "Exit codes: 0 done; 1 safecf doctor found" in out


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
        ("safecf expl", ["explain"]),
        ("safecf explain mi", ["mine.safetensors"]),
        ("safecf export mine.safetensors --format u", ["usearch"]),
        ("safecf data split folder", ["folder/"]),
    ],
)
def test_shells_complete_names_and_files(run, monkeypatch, tmp_path, typed, offered):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("mine.safetensors", "ml-20m.csv", "mine.csv"):
        (tmp_path / name).touch()
    monkeypatch.setenv("_SAFECF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.split() == offered


DATA_COMMANDS = (
    *(["fit"], ["evaluate"], ["compare"], ["tune"], ["recommend"], ["explain"]),
    *(["data", "summary"], ["data", "split"]),
)


def test_all_commands_read_data_with_the_same_options(run):
    for command in DATA_COMMANDS:
        shown = run(*command, "--help")[1]
        for name in vars(command_options.DataOptions([])):
            assert name == "data" or command_options.flag(name) in shown


@pytest.mark.parametrize(
    ("command", "message", "said"),
    [
        (fit, "try user='visitor'", "try --user 'visitor'"),
        (fit, "read it with timestamp=", "read it with --timestamp"),
        (fit, "try min_rating=4", "try --min-rating 4"),
        (fit, "pass path=..., or", "pass --path ..., or"),
        (fit, "factors=0 has to be from 1", "factors=0 has to be from 1"),  # an option of a model
        (doctor, "factors=0 has to be at least 1", "--factors 0 has to be at least 1"),
        (fit, "tail=0 has to be in (0, 1]", "tail=0 has to be in (0, 1]"),
        (
            fit,
            "level=0 has to be a share; try level=0.3",
            "--tail 0 has to be a share; try --tail 0.3",
        ),
        (fit, "heldout is 0; hold out more", "--heldout is 0; hold out more"),
        (evaluate, "holdout_share is 2; it has", "--share is 2; it has"),
        (evaluate, "unknown metric 'recal': known", "unknown --metric 'recal': known"),
        (serve, "unknown log 'xml': known", "unknown --log 'xml': known"),
        (fit, "unknown log 'xml': known", "unknown log 'xml': known"),
        (fit, "unknown way to treat duplicates 'x'", "unknown --duplicates 'x'"),
        (fit, "lower heldout or min_interactions", "lower --heldout or --min-user-interactions"),
        (fit, "unknown item 'x': 80 are known", "unknown item 'x': 80 are known"),
        (fit, "pass checkpoint=, or resume=FILE", "pass --checkpoint, or --resume FILE"),
        (fit, "the item is a weight of the data", "the item is a weight of the data"),
        (recommend, "N=0 has to be at least 1; try N=10", "--N 0 has to be at least 1; try --N 10"),
        (recommend, "2 ids in filter_items are", "2 ids in --filter-items are"),
        (recommend, "unknown item (in items) 7", "unknown item (in --items) 7"),
        (recommend, "items: the folder has no file", "items: the folder has no file"),
        (recommend, "unknown user (in user_items) 7", "unknown user (in the data) 7"),
        (
            recommend,
            "or filter_already_liked_items=False, which",
            "or --no-filter-already-liked-items, which",
        ),
    ],
)
def test_arguments_are_rewritten_as_options(command, message, said):
    assert as_options(message, options_of(command)) == said


def test_an_interrupt_shows_no_traceback(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("safecf.cli.inputs.load_data", interrupted)
    code, out, err = run("data", "summary", "demo")
    assert code != 0
    assert "Traceback" not in out + err
