"""`safecf data`: summaries, and the paper's six files."""

import hashlib
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import safecf
from safecf import cli, datasets
from safecf.cli.commands import app
from safecf.data.splits import split_files
from safecf.data.splits.split_files import FILES, NAMES, USERS
from tests.data.official import ml_1m_text, random_rows
from tests.data.paper_files import ML1M_SUMS, files_of


def run(*arguments):
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_text(ml_1m_text(random_rows()))
    return path


@pytest.fixture
def small(monkeypatch):
    dataset = replace(datasets.DATASETS["ml-1m"], heldout=5)
    monkeypatch.setitem(datasets.DATASETS, "ml-1m", dataset)


def test_summary_of_a_text_file(ratings):
    options = ("--separator", "::", "--no-header", "--user", 0, "--item", 1)
    lines = run("summary", ratings, *options).splitlines()
    count = len(random_rows())
    assert lines[0].split() == ["users", "40"]
    assert lines[1].split() == ["items", "30"]
    assert lines[2].split() == ["interactions", str(count)]
    liked = run("summary", ratings, *options, "--rating", 2, "--min-rating", 4)
    assert liked.splitlines()[2].split()[1] != str(count)


def test_summary_of_a_data_set(ratings, monkeypatch):
    monkeypatch.setenv("SAFECF_DATA", str(ratings.parent))
    assert "users" in run("summary", "ml-1m")


def test_split_writes_the_files_of_the_slow_twin(tmp_path, ratings, small):
    out = tmp_path / "some" / "folder"
    said = run("split", "ml-1m", "--path", ratings, "--out", out, "--seed", 7)
    assert "5 validation and 5 test users" in said
    log = datasets.load("ml-1m", ratings)
    users, items = log.user_ids[log.users], log.item_ids[log.items]
    expected = files_of(datasets.paper_split("ml-1m", ratings, seed=7), users, items)
    assert {name: (out / name).read_bytes().decode() for name in NAMES} == expected
    assert os.listdir(out.parent) == ["folder"]
    run("split", "ml-1m", "--path", ratings, "--out", out)
    assert sorted(os.listdir(out)) == sorted(FILES)
    assert (out / "train.csv").read_bytes().decode() != expected["train.csv"]


def test_split_of_movielens_1m_is_the_papers(tmp_path, real_data):
    run("split", "ml-1m", "--path", real_data, "--out", tmp_path)
    sums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tmp_path.iterdir()
        if path.name != USERS
    }
    assert sums == ML1M_SUMS


def test_a_failed_split_leaves_no_files(tmp_path, ratings, small, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(split_files, "_write_pairs", fail)
        with pytest.raises(OSError, match=r"cannot write the file: No space left .*out/train\.csv"):
            run("split", "ml-1m", "--path", ratings, "--out", out)
    assert os.listdir(tmp_path) == ["ratings.dat"]
    with pytest.raises(NotADirectoryError, match=r"ratings\.dat is a file; give a folder"):
        run("split", "ml-1m", "--path", ratings, "--out", ratings)


def test_errors_are_shown_without_files_left(tmp_path, ratings, monkeypatch, capsys):
    given = ["data", "split", "ml-1m", "--path", ratings, "--out", tmp_path / "out"]
    monkeypatch.setattr(sys, "argv", ["safecf", *map(str, given)])
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main()
    assert "heldout 1000 for validation and again for the test" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["ratings.dat"]


@pytest.fixture
def folder(tmp_path, ratings, small):
    run("split", "ml-1m", "--path", ratings, "--out", tmp_path / "split")
    return tmp_path / "split"


def run_main(monkeypatch, capsys, *arguments):
    """Run a command as it is typed; return its exit code and what it prints."""
    monkeypatch.setattr(sys, "argv", ["safecf", *map(str, arguments)])
    with pytest.raises(SystemExit, match=r"^\d+$") as end:
        cli.main()
    return end.value.code, capsys.readouterr()


def test_commands_take_the_folder_of_a_split(folder, ratings, monkeypatch, capsys):
    split = safecf.split.read(folder)
    original = datasets.paper_split("ml-1m", ratings)
    parts = (original.validation, original.test)
    count = original.train.nnz + sum(part.history.nnz + part.target.nnz for part in parts)
    assert run("summary", folder).splitlines()[2].split() == ["interactions", str(count)]
    out = folder.parent / "out.json"
    model = "safer2:factors=4,iterations=2"
    code, _ = run_main(monkeypatch, capsys, "evaluate", folder, "-m", model, "-q", "--out", out)
    assert code == 0
    assert f"read from {folder}" in out.read_text()
    np.testing.assert_array_equal(split.train.toarray(), original.train.toarray())


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("evaluate", ["-m", "ials", "--heldout", 3], "--heldout does not apply to .*split already"),
        ("evaluate", ["-m", "ials", "--split", "holdout"], "--split does not apply to"),
        ("evaluate", ["-m", "ials", "--split-seed", 3], "--split-seed does not apply to"),
        ("evaluate", ["-m", "ials", "--repeats", 3], "--repeats does not apply to"),
        ("evaluate", ["-m", "ials", "--share", 0.5], "--share does not apply to"),
        ("tune", ["-m", "ials", "--split", "holdout"], "--split does not apply to"),
        ("evaluate", ["-m", "ials", "--user", "uid"], "--user does not apply to"),
        ("evaluate", ["-m", "ials", "--min-user-interactions", 3], "--min-user-interactions does"),
        ("evaluate", ["-m", "ials", "--path", "x"], "--path does not apply to"),
        ("data", ["--separator", ";"], "--separator does not apply to .*, which is split already"),
    ],
)
def test_options_of_splitting_are_refused_with_a_split(
    folder, monkeypatch, capsys, command, options, message
):
    given = ["data", "summary", folder, *options] if command == "data" else [command, folder]
    given = given if command == "data" else [*given, *options]
    code, told = run_main(monkeypatch, capsys, *given)
    assert code == 2
    assert re.search(message, told.err)
    assert "Traceback" not in told.err


def test_a_split_is_not_split_again(folder, monkeypatch, capsys):
    code, told = run_main(
        monkeypatch, capsys, "data", "split", folder, "--out", folder.parent / "x"
    )
    assert (code, "is split already; give the data" in told.err) == (2, True)


def test_ids_with_line_breaks_are_not_split(tmp_path, monkeypatch, capsys):
    lines = [f'{user},"page\n{page}"\n' for user in range(40) for page in range(6)]
    (tmp_path / "log.csv").write_text("user,item\n" + "".join(lines))
    given = ("data", "split", tmp_path / "log.csv", "--out", tmp_path / "split")
    code, told = run_main(monkeypatch, capsys, *given)
    assert code == 2
    assert "holds a line break, while a line of unique_sid.txt is one item" in told.err
    assert os.listdir(tmp_path) == ["log.csv"]


def test_weights_and_groups_are_lost_with_a_warning(tmp_path, monkeypatch, capsys):
    lines = [f"{user},{page},2\n" for user in range(40) for page in range(6)]
    (tmp_path / "log.csv").write_text("user,item,w\n" + "".join(lines))
    given = ("data", "split", tmp_path / "log.csv", "--weight", "w", "--out", tmp_path / "split")
    code, told = run_main(monkeypatch, capsys, *given)
    assert (code, "the files hold no weights" in told.err) == (0, True)
