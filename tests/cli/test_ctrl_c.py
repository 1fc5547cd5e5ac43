"""Ctrl-C, at any moment of any command."""

import os
import signal
import sys

import pytest

from safecf.cli import results
from tests.cli.processes import GIVEN, MAIN, start

# Raises KeyboardInterrupt at an import of its number, once; the first is that of the commands.
HOOK = """
import sys

class Interrupt:
    left = int(sys.argv.pop(1))
    begun = False

    def find_spec(self, name, path=None, target=None):
        Interrupt.begun |= name == "safecf.cli.commands"
        Interrupt.left -= Interrupt.begun
        if Interrupt.left == 0:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize("number", [1, 2, 3, 10, 40, 100, 200, 300])
def test_ctrl_c_during_an_import_ends_the_command(clicks, number):
    """Before them are only `safecf` and `safecf.cli`, of which nothing has run."""
    found = start(number, "evaluate", clicks, *GIVEN, code=HOOK + MAIN, capture_output=True)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "safecf: interrupted\n")


def interrupt(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)


COMMANDS = (
    "fit",
    "evaluate",
    "compare",
    "tune",
    "recommend",
    "similar",
    "explain",
    "export",
    "demo",
    "data",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_ends_every_command(run, clicks, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("safecf.cli.inputs.load_data", interrupt)
    monkeypatch.setattr("safecf.cli.inputs.draw", interrupt)
    monkeypatch.setattr("safecf.models.Recommender.load", interrupt)
    arguments = {
        "fit": (clicks, *GIVEN[:4], "-o", "model"),
        "recommend": ("m.safetensors", clicks, *GIVEN[:4], "-o", "best.parquet"),
        "similar": ("m.safetensors", "page 1", "-o", "best.parquet"),
        "explain": ("m.safetensors", clicks, *GIVEN[:4], "ann", "page 1", "-o", "why.csv"),
        "export": ("m.safetensors", "-o", "items.npz"),
        "evaluate": (clicks, *GIVEN, "--out", "o.json"),
        "compare": (clicks, *GIVEN, "-m", "ease", "--out", "o.json"),
        "tune": (clicks, *GIVEN, "--out", "o.json"),
        "demo": ("--out", "demo"),
        "data": ("split", clicks, *GIVEN[:4], "--out", "folder"),
    }[command]
    assert run(command, *arguments) == (130, "", "safecf: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == [clicks.name]


class Swallowing:
    """An error in a destructor goes no further: Python shows it, and goes on."""

    def __del__(self):
        interrupt()


def swallowed():
    Swallowing()


@pytest.mark.parametrize("place", ["safecf.cli.inputs.name_models", "safecf.cli.results.evaluate"])
def test_a_swallowed_ctrl_c_is_raised_again(run, clicks, tmp_path, monkeypatch, place):
    module, _, name = place.rpartition(".")
    original = getattr(sys.modules[module], name)

    def call(*arguments, **keywords):
        swallowed()
        return original(*arguments, **keywords)

    monkeypatch.setattr(place, call)
    file = tmp_path / "o.json"
    assert run("evaluate", clicks, *GIVEN, "--out", file) == (130, "", "safecf: interrupted\n")
    assert not file.exists()


@pytest.mark.parametrize("other", [RuntimeError, ValueError])
def test_a_ctrl_c_that_became_another_error_is_one(run, clicks, monkeypatch, other):
    def call(*_, **__):  # as Python 3.11 does in __set_name__
        swallowed()
        raise other("as if nothing had happened")

    monkeypatch.setattr("safecf.cli.inputs.load_data", call)
    assert run("evaluate", clicks, *GIVEN) == (130, "", "safecf: interrupted\n")


def test_a_swallowed_ctrl_c_ends_the_training(run, clicks, monkeypatch):
    epochs = []

    def look(*arguments):
        epochs.append(arguments)
        swallowed()
        check(*arguments)

    check = results.check_interrupt
    monkeypatch.setattr(results, "check_interrupt", look)
    code, out, err = run("evaluate", clicks, *GIVEN)
    assert (code, out, err) == (130, "", "safecf: interrupted\n")
    assert len(epochs) == 1


LATE = """
import atexit, os, signal
from safecf.cli import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)
main()
"""


def test_ctrl_c_has_no_effect_on_a_command_that_is_done():
    """The process would end by the signal, or with a traceback."""
    found = start("--version", code=LATE, capture_output=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("safecf ")
