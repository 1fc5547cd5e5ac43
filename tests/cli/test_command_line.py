"""The command line itself: help, version, and how fast it starts."""

import subprocess
import sys

import pytest

import safecf
from safecf.cli import command_options
from safecf.cli.running import as_options
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


def test_every_command_has_its_own_help_with_an_example(run):
    for command in (["evaluate"], ["compare"], ["data", "summary"], ["data", "split"]):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert f"safecf {' '.join(command)} " in out.split("For example:")[1]


def test_all_commands_read_data_with_the_same_options(run):
    for command in (["evaluate"], ["compare"], ["data", "summary"], ["data", "split"]):
        shown = run(*command, "--help")[1]
        for name in vars(command_options.DataOptions([])):
            assert name == "data" or command_options.flag(name) in shown


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("try user='visitor'", "try --user 'visitor'"),
        ("read it with timestamp=", "read it with --timestamp"),
        ("try min_rating=4", "try --min-rating 4"),
        ("pass path=..., or", "pass --path ..., or"),
        ("factors=0 has to be from 1", "factors=0 has to be from 1"),
        ("tail=0 has to be in (0, 1]", "tail=0 has to be in (0, 1]"),  # an option of a model
        ("level=0 has to be a share; try level=0.3", "--tail 0 has to be a share; try --tail 0.3"),
        ("heldout is 0; hold out more", "--heldout is 0; hold out more"),
        ("holdout_share is 2; it has", "--share is 2; it has"),
        ("unknown metric 'recal': known", "unknown --metric 'recal': known"),
        ("unknown way to treat duplicates 'x'", "unknown --duplicates 'x'"),
        ("lower heldout or min_interactions", "lower --heldout or --min-user-interactions"),
        ("the item is a weight of the data", "the item is a weight of the data"),
    ],
)
def test_arguments_are_rewritten_as_options(message, said):
    assert as_options(message) == said


def test_an_interrupt_shows_no_traceback(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("safecf.cli.inputs.load_data", interrupted)
    code, out, err = run("data", "summary", "demo")
    assert code != 0
    assert "Traceback" not in out + err
