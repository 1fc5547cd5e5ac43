"""Sessions: from cells to pages, with failures, interrupts and further rounds, on a toy."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest

import reproduction
from reproduction import data, page, presets
from reproduction.base import Cell, Experiment, Options, Results
from reproduction.page import Page
from reproduction.runner import run_cells
from reproduction.session import PlanError, Session
from reproduction.store import Store
from safecf.models.presets import FILE
from tests.reproduction import tasks

pytest.importorskip("matplotlib", reason="sessions refuse to start without it")


def run(experiment, tmp_path, options=None, **more):
    """Run an experiment in this process; return the number of failed cells, and its messages."""
    lines = []
    chosen = options or experiment.options("tiny", splits=2, seeds=1, trials=1)
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False, **more)
    return session.run(experiment, chosen, lines.append), lines


def cells_of(options):
    return [Cell(tasks.fail_on_two, {"number": number}) for number in range(options.splits)]


def render(results, options):
    return Page([f"{len(results)} cells"], [each.settings for each in results])


TOY = Experiment("toy", "A toy", "nothing", cells_of, render, splits=4)


def test_a_failure_is_reported_and_leaves_no_page(tmp_path):
    failed, lines = run(TOY, tmp_path, TOY.options("tiny"))
    assert failed == 1
    assert "ValueError: two is too many" in lines[0]
    assert '{"number":2}' in lines[0]
    assert "no page was written, since 1 cell failed" in lines[1]
    assert not (tmp_path / "out").exists()
    assert run(TOY, tmp_path, TOY.options("tiny", splits=2))[0] == 0
    assert "2 of 4 splits" in (tmp_path / "out" / "toy-tiny-part.md").read_text()


def test_failures_are_grouped_by_their_reasons(tmp_path):
    cells = [Cell(tasks.fail, {"number": number, "looks": [1, 2]}) for number in range(9)]
    bad = replace(TOY, cells=lambda options: cells)
    lines = run(bad, tmp_path, bad.options("tiny"))[1]
    assert lines[0].startswith("failed: ValueError: there are no data (tasks.py, line")
    assert lines[0].endswith('in 3 cells, such as fail {"number":0}')
    assert lines[1] == "skipped, since all failed before: 6 cells"


def test_a_missing_library_is_reported_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.session.find_spec", lambda name: None)
    with pytest.raises(PlanError, match="needs PyTorch"):
        run(reproduction.load("table-1"), tmp_path)
    assert run(reproduction.load("cvar"), tmp_path)[0] == 0


def test_pages_name_the_files_of_their_data(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "find", lambda name, path: tmp_path / "data")
    (tmp_path / "data").write_text("1,2")
    on_file = replace(
        TOY, cells=lambda options: [Cell(tasks.double, {"number": 1, "data": "ml-1m"})]
    )
    assert run(on_file, tmp_path, on_file.options("tiny"))[0] == 0
    total = data.checksum(tmp_path / "data")
    assert f"Data: ml-1m, sha256 `{total[:16]}" in (tmp_path / "out" / "toy-tiny.md").read_text()


def test_render_only_reports_missing_cells(tmp_path):
    with pytest.raises(FileNotFoundError, match="2 of 2 cells are not in"):
        run(TOY, tmp_path, TOY.options("tiny", splits=2), render_only=True)


def test_an_interrupt_says_how_to_go_on(tmp_path):
    def cells(options):
        return [Cell(tasks.interrupt_on_two, {"number": number}) for number in range(4)]

    lines = []
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False)
    with pytest.raises(KeyboardInterrupt, match="2 of 4"):
        session.run(replace(TOY, cells=cells), Options("tiny"), lines.append)
    assert lines == ["stopped: 2 of 4 cells are finished and kept; run the command again to go on"]


def test_more_cells_follow_from_results(tmp_path):
    def then(results: Results, options):
        largest = max(each.record["twice"] for each in results)
        return [Cell(tasks.double, {"number": largest + 1})] if largest < 20 else []

    grown = replace(TOY, cells=lambda options: [Cell(tasks.double, {"number": 1})], then=then)
    assert run(grown, tmp_path, Options("tiny"))[0] == 0
    assert "4 cells" in (tmp_path / "out" / "toy-tiny-part.md").read_text()  # 1, 3, 7, 15


def test_rounds_have_numbers(tmp_path, monkeypatch):
    titles = []

    def noted(cells, store, *, title, **others):
        titles.append(title)
        return run_cells(cells, store, title=title, **others)

    monkeypatch.setattr("reproduction.session.run_cells", noted)
    one, two = ([Cell(tasks.double, {"number": number})] for number in (1, 2))
    plain = replace(TOY, cells=lambda options: one)
    run(plain, tmp_path, Options("tiny"))
    run(replace(plain, then=lambda results, options: two), tmp_path, Options("tiny"))
    assert titles == ["toy", "toy, round 1", "toy, round 2"]


def test_options_are_checked():
    with pytest.raises(ValueError, match="unknown data of robustness 'ml-20m-like'"):
        reproduction.load("robustness").options("ml-20m-like")
    with pytest.raises(ValueError, match="--splits 0"):
        TOY.options("tiny", splits=0)
    assert TOY.options("tiny", splits=99).splits == 4
    assert TOY.command(TOY.options(splits=2)) == "python -m reproduction toy --splits 2"


def test_ignored_options_are_reported():
    assert TOY.ignored(splits=4, seeds=1, trials=None, jobs=8) == []
    assert TOY.ignored(splits=100, seeds=3) == [
        "toy has only 4 splits: --splits 100 runs all",
        "toy has no seeds: --seeds is ignored",
    ]
    timed = replace(TOY, alone=True)
    assert timed.ignored(jobs=1) == []
    assert timed.ignored(jobs=2) == ["toy measures time: its cells run one at a time, not 2"]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("robustness", {}, "robustness"),
        ("robustness", {"splits": 50, "seeds": 99}, "robustness"),
        ("robustness", {"splits": 49}, "robustness-part"),
        ("robustness", {"presets": Path("mine.toml")}, "robustness-part"),
        ("robustness", {"presets": FILE}, "robustness"),
        ("table-1", {"data": "msd", "seeds": 1}, "table-1-msd-part"),
        ("tuning", {"presets": Path("mine.toml")}, "tuning"),
        ("tuning", {"trials": 2}, "tuning-part"),
        ("cvar", {"data": "ml-1m", "presets": Path("mine.toml"), "splits": 2}, "cvar"),
    ],
)
def test_only_the_whole_experiment_has_its_page(name, given, expected):
    experiment = reproduction.load(name)
    assert experiment.page_name(experiment.options(**given)) == expected


def test_cells_alone_need_no_matplotlib_and_make_no_page(tmp_path, monkeypatch):
    def refuses(results, options):
        raise AssertionError("rendered")

    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="figures need matplotlib"):
        Session(output=tmp_path, cells=tmp_path)
    options = TOY.options("tiny", splits=2)
    failed, lines = run(replace(TOY, render=refuses), tmp_path, options, cells_only=True)
    assert (failed, lines) == (0, [f"toy: 2 cells in {tmp_path / 'cells'}"])
    assert not (tmp_path / "out").exists()
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_cells_alone_of_tuning_give_presets(tmp_path):
    def writes(results, options):
        options.presets.write_text(f"# {len(results)}")
        return Page(["found"])

    options = TOY.options("tiny", splits=2, presets=tmp_path / "mine.toml")
    run(replace(TOY, name="tuning", render=writes), tmp_path, options, cells_only=True)
    assert (tmp_path / "mine.toml").read_text() == "# 2"
    assert not (tmp_path / "out").exists()


def test_commands_have_presets_as_given():
    options = TOY.options(presets=Path("some where", "mine.toml"))
    assert TOY.command(options) == "python -m reproduction toy --presets 'some where/mine.toml'"


def test_other_presets_are_named_on_the_page(tmp_path):
    options = TOY.options("tiny", splits=2, presets=tmp_path / "mine.toml")
    run(TOY, tmp_path, options)
    assert "mine.toml" in (tmp_path / "out" / "toy-tiny-part.md").read_text().split("\n\n")[4]


def test_pages_name_the_origins_of_their_cells(tmp_path):
    options = TOY.options("tiny", splits=2)
    run(TOY, tmp_path, options)
    name = tmp_path / "out" / "toy-tiny-part.md"
    here = page.current_origin()
    assert f"with safecf {here['safecf']}, numpy {np.__version__}" in name.read_text()
    assert f"at commit `{here['commit']}`, on {here['machine']}." in name.read_text()
    there = Store(tmp_path / "cells")
    there.origin = {**here, "commit": "abc", "machine": "another machine"}
    there.put(cells_of(options)[1], {"twice": 2}, 0)
    run(TOY, tmp_path, options, render_only=True)
    lines = name.read_text().splitlines()
    assert any(line.startswith("- 1 cell with") and here["machine"] in line for line in lines)
    assert any(line.endswith("at commit `abc`, on another machine") for line in lines)


def refused(options):
    raise ValueError("nobody knows the settings")


def many(tmp_path, *plans):
    """Run several in this process; return how many have no page, and the messages."""
    lines = []
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False)
    return session.run_all(plans, lines.append), lines


def test_what_cannot_be_run_is_reported_first_and_the_rest_runs(tmp_path):
    bad = replace(TOY, name="bad", cells=refused)
    good, options = TOY.options("tiny", splits=2), bad.options("tiny")
    failed, lines = many(tmp_path, (TOY, good), (bad, options), (replace(TOY, name="last"), good))
    assert failed == 1
    assert lines[0] == "bad cannot be run: nobody knows the settings"
    assert all(line.startswith("written: ") for line in lines[1:])
    assert {file.stem for file in (tmp_path / "out").iterdir()} == {
        *("toy-tiny-part", "last-tiny-part")
    }
    with pytest.raises(PlanError, match="nobody knows"):
        many(tmp_path, (bad, options))


def test_a_bug_in_a_page_does_not_stop_the_others(tmp_path, capsys):
    def broken(results, options):
        return {}["model"]

    bad, options = replace(TOY, name="bad", render=broken), TOY.options("tiny", splits=2)
    failed, lines = many(tmp_path, (bad, options), (TOY, options))
    assert failed == 1
    assert lines[0].startswith(
        "bad: no page was written, because of KeyError: 'model'; this is a bug"
    )
    assert "KeyError: 'model'" in capsys.readouterr().err
    assert lines[1].startswith("written: ")


def test_presets_that_tuning_writes_are_used_by_those_after_it(tmp_path):
    file = tmp_path / "mine.toml"

    def writes(results, options):
        presets.update(options.presets, "tiny", [("tuned", presets.load("tiny", "paper")["iALS"])])
        return Page(["found"])

    def reads(options):
        presets.require("tiny", "tuned", ["iALS"], options.presets)
        return []

    tunes = replace(TOY, name="tuning", cells=lambda options: [], render=writes)
    uses = replace(TOY, name="uses", cells=reads)
    options = TOY.options("tiny", presets=file)
    assert many(tmp_path, (tunes, options), (uses, options))[0] == 0
    file.unlink()
    failed, lines = many(tmp_path, (uses, options), (tunes, options))
    assert failed == 1
    assert lines[0].startswith("uses cannot be run: there is no")


def test_tuning_comes_before_what_uses_its_settings():
    names = reproduction.NAMES
    for name in ("table-1", "kernels", "dimensions", "frontier", "sensitivity"):
        assert names.index("tuning") < names.index(name)


def test_folders_are_tried_before_anything_runs(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for option in ("output", "cells"):
        with pytest.raises(NotADirectoryError, match=f"file is a file; .* --{option}"):
            Session(**{"output": tmp_path, "cells": tmp_path, option: tmp_path / "file" / "new"})

    def full(dir):
        if dir == tmp_path / "full":
            raise OSError(30, "Read-only file system")
        return TemporaryFile(dir=dir)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    (tmp_path / "full").mkdir()
    for option in ("output", "cells"):
        with pytest.raises(OSError, match=f"Read-only file system.* --{option}"):
            Session(**{"output": tmp_path, "cells": tmp_path, option: tmp_path / "full" / "new"})
    Session(output=tmp_path, cells=tmp_path / "full", render_only=True)
    session, tunes = Session(output=tmp_path, cells=tmp_path), reproduction.load("tuning")
    for file, message in (("full/mine.toml", "Read-only"), ("no/mine.toml", "there is no folder")):
        with pytest.raises(PlanError, match=f"{message}.* --presets"):
            session.plan(tunes, tunes.options("tiny", presets=tmp_path / file))
