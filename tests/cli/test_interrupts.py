"""Ctrl-C, at any moment of any command."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import safecf
from tests.cli.conftest import COLUMNS, interrupt
from tests.cli.processes import GIVEN, MAIN, start

INTERRUPTED = (130, "", "safecf: interrupted\n")

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


@pytest.mark.parametrize("number", [1, 2, 10, 100, 300])
def test_ctrl_c_during_an_import_ends_the_command(clicks, number):
    """Before them are only `safecf` and `safecf.cli`, of which nothing has run."""
    found = start(number, "evaluate", clicks, *GIVEN, code=HOOK + MAIN, capture_output=True)
    assert (found.returncode, found.stdout, found.stderr) == INTERRUPTED


COMMANDS = {
    "fit": ("safecf.data", (*COLUMNS, "-o", "model")),
    "evaluate": ("safecf.data", (*GIVEN, "--out", "o.json")),
    "compare": ("safecf.als", (*GIVEN, "-m", "ease", "--out", "o.json")),
    "tune": ("safecf.data", (*GIVEN, "--out", "o.json")),
    "data split": ("safecf.data", (*COLUMNS, "--out", "folder")),
    "recommend": ("safecf.models", (*COLUMNS, "-o", "best.parquet")),
    "similar": ("safecf.models", ("page 1", "-o", "best.parquet")),
    "explain": ("safecf.models", (*COLUMNS, "ann", "page 1", "-o", "why.csv")),
    "export": ("safecf.models", ("-o", "items.npz")),
    "demo": ("safecf.data", ("--out", "demo")),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_ends_every_command(run, at_call, clicks, model, command):
    package, arguments = COMMANDS[command]
    first = {"demo": (), "similar": ("m",), "export": ("m",)}
    first |= dict.fromkeys(("recommend", "explain"), ("m", clicks))
    before = sorted(Path().iterdir())
    at_call(package)
    assert run(*command.split(), *first.get(command, (clicks,)), *arguments) == INTERRUPTED
    assert sorted(Path().iterdir()) == before


class Swallowing:
    """An error in a destructor goes no further: Python shows it, and goes on."""

    def __del__(self):
        interrupt()


def swallow():
    Swallowing()


@pytest.mark.parametrize("package", ["safecf.cli.evaluate", "safecf.data", "safecf.evaluation"])
def test_a_swallowed_ctrl_c_is_raised_again(run, at_call, clicks, package):
    at_call(package, swallow)
    assert run("evaluate", clicks, *GIVEN, "--out", "o.json") == INTERRUPTED
    assert not Path("o.json").exists()


def test_a_ctrl_c_that_was_swallowed_last_is_raised_at_the_end(run, at_call, model):
    at_call("safecf.models", swallow)
    assert run("similar", "m", "page 1", "--json")[::2] == INTERRUPTED[::2]


@pytest.mark.parametrize("other", [RuntimeError, ValueError])
def test_a_ctrl_c_that_became_another_error_is_one(run, at_call, clicks, other):
    def become():  # as Python 3.11 does in __set_name__
        swallow()
        raise other("as if nothing had happened")

    at_call("safecf.data", become)
    assert run("evaluate", clicks, *GIVEN) == INTERRUPTED


def test_a_swallowed_ctrl_c_ends_the_training(run, at_call, clicks):
    """In the epoch in which it came: the rest would be thousands of calls."""
    epochs = []

    def ask(frame):
        epochs.append(frame.f_code.co_name == "half_step")
        return False

    def look():
        swallow()
        at_call("safecf.als", when=ask)

    at_call("safecf.als", look)
    given = (*GIVEN[:-1], "ials:factors=4,iterations=1000")
    assert run("evaluate", clicks, *given) == INTERRUPTED
    assert 0 < len(epochs) < 1000


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


# What was interrupted goes on.


def has_file(pattern):
    return lambda _: any(Path().glob(pattern))


def test_training_goes_on(run, done, at_call, clicks):
    command = ("fit", clicks, *COLUMNS, "-m", "ials:factors=4,iterations=6", "-o", "model", "-q")
    at_call("safecf.als", when=has_file("run.safetensors"))
    code, out, err = run(*command, "--checkpoint", "run")
    assert (code, out) == (130, "")
    advice = "to go on, add --resume run.safetensors to the same command"
    assert err == f"safecf: interrupted; {advice}\n"
    again = ("--checkpoint", "run", "--resume", "run")
    at_call("safecf.als", when=has_file("run.safetensors"))
    code, out, err = run(*command, *again)
    assert err == "safecf: interrupted; to go on, start the same command again\n"
    assert not Path("model.safetensors").exists()
    done(*command, *again)
    resumed = safecf.load("model").item_factors
    done(*command)
    np.testing.assert_array_equal(resumed, safecf.load("model").item_factors)


def test_recommending_goes_on(run, done, at_call, clicks, model, data):
    given = ("recommend", "m", clicks, *COLUMNS, "-q", "-o", "r.parquet", "--resume")
    at_call("safecf.models", when=has_file(".r.parquet*"))
    said = "safecf: interrupted; to go on, start the same command again\n"
    assert run(*given) == (130, "", said)
    done(*given)
    found = pyarrow.parquet.read_table("r.parquet").to_pylist()
    assert found == model.recommend_frame(user_items=data).to_pylist()
    assert not list(Path().glob(".r.parquet*"))


def test_tuning_shows_the_best_so_far_and_goes_on(run, done, at_call, clicks):
    fits = []

    def later(frame):
        fits.extend([1] * (frame.f_code.co_name == "fit"))
        return len(fits) == 6

    command = ("tune", clicks, *GIVEN, "--trials", 6, "--json")
    at_call("safecf.models", when=later)
    code, out, err = run(*command)
    assert (code, out) == (130, "")
    assert re.match(r"IALS: \d trials?, best mean 0\.", err)
    assert "clicks-ials.study.sqlite has all finished trials: start again to go on" in err
    resumed = json.loads(done(*command))
    assert len(resumed["tuning"]["searches"][0]["trials"]) == 6
