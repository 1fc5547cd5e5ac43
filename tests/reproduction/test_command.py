"""`python -m reproduction`, as a person would type it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reproduction
from reproduction import __main__ as command
from safecf.cli.running import run as run_app

ROOT = Path(__file__).parents[2]


def test_the_list_has_all_experiments(run):
    code, out, _ = run("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(reproduction.NAMES)


def test_the_help_names_them_with_an_example(run):
    shown = run("--help")[1]
    assert "python -m reproduction robustness" in shown.split("For example:")[1]
    for name in reproduction.NAMES:
        assert name in shown


def test_nothing_heavy_is_imported_for_the_help():
    heavy = "{'numpy', 'scipy', 'pyarrow', 'torch'} & {*sys.modules}"
    code = f"import sys, reproduction.__main__; found = {heavy}; sys.exit(str(found or ''))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""


def test_it_writes_pages_with_workers(run, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folders = ["--output", str(tmp_path / "out"), "--cells", str(tmp_path / "cells")]
    sizes = ["--data", "tiny", "--splits", "1", "--seeds", "1"]
    arguments = ["robustness", *sizes, *folders]
    done = subprocess.run(
        [sys.executable, "-m", "reproduction", *arguments, "--jobs", "2"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = tmp_path / "out" / "robustness-tiny-part.md"
    assert f"written: {page}" in done.stdout
    assert (
        "`python -m reproduction robustness --data tiny --splits 1 --seeds 1`" in page.read_text()
    )
    assert len(list((tmp_path / "cells").iterdir())) == 3
    code, _, err = run(*arguments, "--render-only", "-q")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give names of experiments, or --all"),
        (["robustnes"], "did you mean 'robustness'"),
        (["robustness", "--all"], "give names of experiments, or --all"),
        (["robustness", "--data", "msd-like"], "unknown data of robustness"),
        (["robustness", "--jobs", "-1"], "--jobs -1"),
        (["robustness", "--search", "iALS"], "--search is an option of tuning"),
        (["robustness", "--seeds", "0"], "--seeds 0"),
        (["frontier", "--presets", "nowhere.toml"], "there is no nowhere.toml"),
        (["table-1", "--path", "nowhere"], "nowhere: does not exist"),
        (["--all", "--data", "ml-1"], "did you mean 'ml-1m'"),
        (["cvar", "--data", "bogus"], "unknown data 'bogus'"),
        (["robustness", "--output", "pyproject.toml"], "give a folder with --output"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture
def planned(monkeypatch):
    """Run nothing, and return what would have been run."""
    plans = []

    def run_all(self, given, echo):
        plans.extend(given)
        return 0

    monkeypatch.setattr("reproduction.session.Session.run_all", run_all)
    return plans


def test_all_lists_what_it_leaves_out(run, planned):
    code, out, _ = run("--all", "--data", "ml-1m")
    assert code == 0
    [line] = out.splitlines()
    others = ["runtime", "constants", "defaults"]  # synthetic shapes, and several sets at once
    assert line == f"left out, since they do not accept ml-1m: {', '.join(others)}"
    assert [each.name for each, _ in planned] == [n for n in reproduction.NAMES if n not in others]


def test_what_needs_no_data_accepts_any(run, planned):
    assert run("cvar", "table-1", "--data", "msd")[0] == 0
    assert [options.data for _, options in planned] == ["", "msd"]


def test_ignored_options_are_listed_before_anything_runs(run, planned):
    names = "robustness", "table-1", "runtime"
    out = run(*names, "--splits", 100, "--trials", 2, "--jobs", 2)[1]
    assert out.splitlines() == [
        "robustness has only 50 splits: --splits 100 runs all",
        "robustness has no trials: --trials is ignored",
        "table-1 has no splits: --splits is ignored",
        "table-1 has no trials: --trials is ignored",
        "runtime measures time: its cells run one at a time, not 2",
        "runtime has no splits: --splits is ignored",
        "runtime has no trials: --trials is ignored",
    ]


def test_all_is_quiet_about_counts_and_names_count_once(run, planned):
    assert run("--all", "--trials", 2)[1] == ""
    planned.clear()
    run("cvar", "cvar")
    assert [each.name for each, _ in planned] == ["cvar"]


def test_a_bug_is_a_traceback_that_names_the_experiment(monkeypatch):
    def broken(*_):
        return {}["model"]

    monkeypatch.setattr("reproduction.presets.require", broken)
    monkeypatch.setattr("sys.argv", ["reproduction", "robustness", "--data", "tiny"])
    with pytest.raises(RuntimeError, match=r"robustness: its cells could not be planned.* bug"):
        run_app(command.app)


def test_the_rest_runs_and_the_exit_code_tells(run, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folders = "--output", tmp_path / "out", "--cells", tmp_path / "cells"
    code, out, err = run("table-1", "cvar", "--data", "gowalla", "--path", tmp_path, *folders)
    assert (code, err) == (1, "")
    assert out.startswith("table-1 cannot be run: ")
    assert (tmp_path / "out" / "cvar.md").is_file()
