"""`safecf reproduce`, as a person would call it."""

import pytest

from safecf import experiments


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
    assert f"written: {tmp_path / 'out' / 'robustness-tiny.md'}" in out.replace("\n", "")
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
    ],
)
def test_mistakes_are_one_line(run, arguments, said):
    code, out, err = run("reproduce", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
