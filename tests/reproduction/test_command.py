"""`safecf reproduce`, as a person would call it."""

import pytest

from safecf import cli, experiments


def test_the_list_has_all_experiments(run):
    code, out, _ = run("reproduce", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(experiments.MODULES)


def test_the_help_names_them_with_an_example(run):
    shown = run("reproduce", "--help")[1]
    assert "safecf reproduce robustness" in shown.split("For example:")[1]
    for name in experiments.MODULES:
        assert name in shown


def test_it_writes_pages_from_processes_of_their_own(run, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folders = "--output", tmp_path / "out", "--cells", tmp_path / "cells"
    sizes = "--data", "tiny", "--splits", 1, "--seeds", 1
    code, out, err = run("reproduce", "robustness", *sizes, *folders, "--jobs", 2)
    assert code == 0, err
    assert f"written: {tmp_path / 'out' / 'robustness-tiny-part.md'}" in out.replace("\n", "")
    assert len(list((tmp_path / "cells").iterdir())) == 3
    code, _, err = run("reproduce", "robustness", *sizes, *folders, "--render-only", "-q")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say which experiment, or --all"),
        (["robustnes"], "did you mean 'robustness'"),
        (["robustness", "--all"], "say which experiment, or --all"),
        (["robustness", "--data", "msd-like"], "unknown data of robustness"),
        (["robustness", "--jobs", "-1"], "--jobs -1"),
        (["robustness", "--seeds", "0"], "--seeds 0"),
        (["frontier", "--presets", "nowhere.toml"], "there is no nowhere.toml"),
        (["table-1", "--path", "nowhere"], "nowhere: does not exist"),
        (["--all", "--data", "ml-1"], "did you mean 'ml-1m'"),
        (["cvar", "--data", "bogus"], "unknown data 'bogus'"),
        (["robustness", "--output", "pyproject.toml"], "give a folder with --output"),
    ],
)
def test_mistakes_are_one_line(run, arguments, said):
    code, out, err = run("reproduce", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.fixture
def planned(monkeypatch):
    """Let nothing be run, and return what would have been."""
    plans = []

    def run_all(self, given, say):
        plans.extend(given)
        return 0

    monkeypatch.setattr("reproduction.session.Session.run_all", run_all)
    return plans


def test_all_says_what_it_leaves_out(run, planned):
    code, out, _ = run("reproduce", "--all", "--data", "ml-1m")
    assert code == 0
    [line] = out.splitlines()
    assert line == "left out, since they do not take ml-1m: runtime"
    assert [each.name for each, _ in planned] == [n for n in experiments.MODULES if n != "runtime"]


def test_what_needs_no_data_takes_any(run, planned):
    assert run("reproduce", "cvar", "table-1", "--data", "msd")[0] == 0
    assert [options.data for _, options in planned] == ["", "msd"]


def test_what_is_ignored_is_told_before_anything_runs(run, planned):
    names = "robustness", "table-1", "runtime"
    out = run("reproduce", *names, "--splits", 100, "--trials", 2, "--jobs", 2)[1]
    assert out.splitlines() == [
        "robustness has 50 splits: --splits 100 is that many",
        "robustness has no trials: --trials is ignored",
        "table-1 has no splits: --splits is ignored",
        "table-1 has no trials: --trials is ignored",
        "runtime takes the time: its cells run one by one, not 2 at once",
        "runtime has no splits: --splits is ignored",
        "runtime has no trials: --trials is ignored",
    ]


def test_all_is_quiet_about_counts_and_names_count_once(run, planned):
    assert run("reproduce", "--all", "--trials", 2)[1] == ""
    planned.clear()
    run("reproduce", "cvar", "cvar")
    assert [each.name for each, _ in planned] == ["cvar"]


def test_a_mistake_of_ours_is_not_shown_as_one_of_the_user(monkeypatch, run):
    def broken(self, given, say):
        raise KeyError("options")

    monkeypatch.setattr("reproduction.session.Session.run_all", broken)
    monkeypatch.setattr("sys.argv", ["safecf", "reproduce", "cvar"])
    with pytest.raises(RuntimeError, match="mistake of safecf"):
        cli.main()


def test_the_rest_runs_and_the_exit_code_tells(run, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folders = "--output", tmp_path / "out", "--cells", tmp_path / "cells"
    code, out, err = run(
        "reproduce", "table-1", "cvar", "--data", "gowalla", "--path", tmp_path, *folders
    )
    assert (code, err) == (1, "")
    assert out.startswith("table-1 cannot be run: ")
    assert (tmp_path / "out" / "cvar.md").is_file()
