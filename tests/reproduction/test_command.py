"""The command line: what it lists, refuses, and keeps."""

import pytest

from reproduction import NAMES
from reproduction.command import main
from tests.helpers import REMEDY


@pytest.fixture
def run(capsys, tmp_path):
    """Return a function that gives the exit code, and what went to stdout and to stderr."""

    def typed(*arguments):
        folders = ("--output", tmp_path / "pages", "--cells", tmp_path / "cells", "--jobs", "0")
        code = main(NAMES, "About.", [*map(str, (*folders, *arguments))])
        return code, *capsys.readouterr()

    return typed


def test_the_list_has_all_experiments(run):
    code, out, _ = run("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(NAMES)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("cvar", "--all"),
        ("robustnes",),
        ("robustness", "--data", "msd"),
        ("robustness", "--splits", "0"),
        ("robustness", "--path", "missing.zip"),
        ("tuning", "--search", "EASY"),
        ("table-1", "--part", "one"),
        ("table-1", "--render"),
        ("cvar", "--jobs", "-1"),
    ],
)
def test_a_mistake_is_one_line_with_a_remedy(run, arguments):
    code, _, errors = run(*arguments)
    assert code == 2
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert REMEDY.search(line), line


def test_an_experiment_that_cannot_run_leaves_the_others(run, tmp_path):
    pytest.importorskip("matplotlib", reason="pages have figures")
    code, out, _ = run("robustness", "cvar", "--path", "missing.zip", "--seeds", "3")
    assert code == 1
    assert "robustness cannot be run" in out
    assert "cvar has no seeds" in out
    assert (tmp_path / "pages" / "cvar.md").is_file()
