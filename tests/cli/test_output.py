"""Outputs that break, targets that cannot be written, and names that hurt."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from safecf import IALS, Evaluation, datasets
from safecf.cli import results
from safecf.cli.output_files import check_targets
from safecf.cli.terminal import Plain
from tests.cli.processes import GIVEN, MAIN, SMALL, start
from tests.reporting.evaluations import make


@pytest.fixture
def files(tmp_path):
    return {"--report": tmp_path / "r.html", "--out": tmp_path / "o.json"}


def options(files):
    return [part for pair in files.items() for part in pair]


def assert_written(files):
    assert "</html>" in files["--report"].read_text()
    assert Evaluation.from_dict(json.loads(files["--out"].read_text())).model == "IALS"


def test_files_are_written_though_nobody_reads_the_output(clicks, files):
    reader, writer = os.pipe()
    os.close(reader)
    found = start(
        "evaluate", clicks, *GIVEN, *options(files), stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")
    assert_written(files)


def test_files_are_written_though_the_output_is_full(clicks, files):
    with Path("/dev/full").open("w") as full:
        found = start(
            "evaluate", clicks, *GIVEN, *options(files), stdout=full, stderr=subprocess.PIPE
        )
    said = "safecf: cannot write to standard output: No space left on device; "
    assert (found.returncode, found.stderr) == (2, f"{said}write it to another place\n")
    assert_written(files)


def test_a_full_output_is_an_error_of_every_command(clicks):
    for command in (["--help"], ["--version"], ["data", "summary", clicks, *GIVEN[:4]]):
        with Path("/dev/full").open("w") as full:
            found = start(*command, stdout=full, stderr=subprocess.PIPE)
        assert found.returncode == 2
        assert found.stderr.count("\n") == 1
        assert "cannot write to standard output: No space left" in found.stderr


def test_a_closed_or_full_stderr_changes_nothing(clicks, files):
    with Path("/dev/full").open("w") as full:
        found = start(
            "evaluate", clicks, *GIVEN, *options(files), stdout=subprocess.PIPE, stderr=full
        )
    assert found.returncode == 0
    assert "written: " in found.stdout
    code = f"import sys; sys.stderr = None; {MAIN}"
    found = start("evaluate", clicks, *GIVEN, *options(files), code=code, stdout=subprocess.PIPE)
    assert found.returncode == 0
    assert_written(files)


def test_a_closed_output_is_an_error_of_every_command(clicks, files):
    """As `safecf ... >&-` in a shell; files are written all the same."""
    said = "safecf: cannot write to standard output: it is closed; write it to another place\n"
    commands = (["--version"], ["data", "summary", clicks, *GIVEN[:4]])
    for command in (*commands, ["evaluate", clicks, *GIVEN, *options(files)]):
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", MAIN, *map(str, command)]
        found = subprocess.run(closed, check=False, timeout=120, text=True, stderr=subprocess.PIPE)
        assert (found.returncode, found.stderr) == (2, said)
    assert_written(files)


def test_a_failing_report_does_not_stop_the_numbers(run, clicks, files, monkeypatch):
    def fail(*_, **__):
        raise OSError("the report fails")

    monkeypatch.setattr(results, "report", fail)
    code, out, err = run("evaluate", clicks, *GIVEN, *options(files))
    assert (code, err) == (2, "safecf: the report fails\n")
    assert "│ IALS" in out
    assert f"written: {files['--out']}" in out
    assert "r.html" not in out
    assert json.loads(files["--out"].read_text())["model"] == "IALS"

    def fail_too(*_, **__):
        raise OSError("the numbers fail")

    monkeypatch.setattr(results, "replace_file", fail_too)
    code, _, err = run("evaluate", clicks, *GIVEN, *options(files))
    assert (code, err) == (2, "safecf: the report fails; the numbers fail\n")


@pytest.fixture
def no_work(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr("safecf.cli.inputs.load_data", fail)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x", "x"),
        ("x", "./x"),
        ("x", "sub/../x"),
        ("new/x", "new/../new/x"),
        ("x", "X"),
        ("new/x", "NEW/x"),
        ("file", "hard"),
        ("file", "link"),
        ("x", "dangling"),
        ("sub/x", "folder/x"),
    ],
)
def test_two_outputs_are_two_files(run, clicks, tmp_path, monkeypatch, no_work, first, second):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("file").write_text("mine")
    Path("hard").hardlink_to("file")
    for link, target in (("link", "file"), ("dangling", "x"), ("folder", "sub")):
        Path(link).symlink_to(target)
    before = sorted(tmp_path.rglob("*"))
    for pair in ((first, second), (second, first)):
        code, _, err = run("evaluate", clicks, *GIVEN, "--report", pair[0], "--out", pair[1])
        told = f"--report {Path(pair[0])} and --out {Path(pair[1])} are one file; name two"
        assert (code, err) == (2, f"safecf: {told}\n")
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "{data}"], "--out {data} is an input of this command, and would be overwritten"),
        (["--report", "link"], "--report link is an input of this command"),
        (["--out", "m.safetensors", "-m", "m.safetensors"], "m.safetensors is an input"),
        (["--report", "a", "--out", "a/b"], "--report a would be both a file and the folder of"),
        (["--out", "a", "--report", "a/b"], "--out a would be both a file and the folder of"),
        (["--out", "/dev/null"], "cannot write /dev/null: it is no regular file"),
        (["--out", "loop"], "cannot write loop: Too many levels of symbolic links"),
        (["--out", "x" * 300], "File name too long; choose another place"),
        (["--out", ""], "--out is empty, or this folder; name the file to write"),
    ],
)
def test_targets_are_checked_before_any_work(
    run, clicks, tmp_path, monkeypatch, no_work, arguments, message
):
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to(clicks)
    Path("loop").symlink_to("loop")
    Path("m.safetensors").write_text("")
    before = clicks.read_bytes()
    given = [each.format(data=clicks) for each in arguments]
    code, _, err = run("evaluate", clicks, *GIVEN, *given)
    assert code == 2
    assert message.format(data=clicks) in err
    assert err.count("\n") == 1
    assert clicks.read_bytes() == before


def test_every_command_checks_its_targets(run, clicks, tmp_path, monkeypatch, no_work):
    monkeypatch.chdir(tmp_path)
    given = (*GIVEN[:6], "-q", "-m", f"ials:{SMALL}")
    for command, message in (
        (["tune", clicks, *given, "--save", "a.safetensors", "--out", "a.safetensors"], "one file"),
        (["tune", clicks, *given, "--study", "a", "--report", "a"], "are one file"),
        (["tune", clicks, *given, "--study", clicks], "is an input of this command"),
        (["demo", "--out", clicks], "is a file; choose another place"),
    ):
        code, _, err = run(*command)
        assert code == 2
        assert message in err
    Path("train.csv").write_text("user,item\n")
    code, _, err = run("data", "split", "train.csv", "--out", ".")
    assert code == 2
    assert "--out train.csv is an input of this command" in err


def test_a_write_protected_target_is_refused(tmp_path, monkeypatch):
    """Root may write anywhere."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OSError, match="file: it is write-protected; choose another place"):
        check_targets([("--out", tmp_path / "file")])


def test_a_read_only_file_system_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match=r"cannot write .*o\.json: Read-only file system; choose"):
        check_targets([("--out", tmp_path / "new" / "o.json")])


@pytest.mark.parametrize("name", ["out[a].html", "out[/a].html", "[red]x", ":smile:.html", "a\\["])
def test_paths_are_printed_as_they_are(run, clicks, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("evaluate", clicks, *GIVEN, "--report", name)
    assert (code, err) == (0, "")
    assert f"written: {name}\n" in out
    assert Path(name).is_file()


def test_control_characters_in_paths_and_names_are_escapes(run, clicks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = datasets.read(clicks, user="visitor", item="page")
    trained = IALS(4, iterations=1, random_state=0).fit(
        log.strong_generalization(heldout=40).training, show_progress=False
    )
    name = "[red]m\x1b[31m\nx.safetensors"
    trained.save(name)
    code, out, err = run("evaluate", clicks, *GIVEN[:7], "-m", name, "--out", "o\x1b[2J\n.json")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "[red]m\\x1b[31m\\nx" in "".join(
        line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")
    ).replace(" ", "")
    assert "written: o\\x1b[2J\\n.json\n" in out
    code, _, err = run("evaluate", "no\x1b[31m\nfile.csv", *GIVEN[-2:])
    assert code == 2
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_a_stream_without_the_characters_gets_escapes(clicks):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    found = start(
        "evaluate", clicks, *GIVEN, "--out", clicks.parent / "ü.json",
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")
    assert "\\xfc.json" in found.stdout


def printed(evaluations, capsys):
    results.print_scores(Plain(), evaluations, "recall@20", 0.3)
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_long_names_stay_distinct(made_up, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    names = ["x" * 100 + end for end in ("a", "b")]
    out = printed([made_up(name, np.linspace(0, 1, 90)) for name in names], capsys)
    assert "…" not in out
    shown = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    assert "".join(shown) == "".join(names)
    assert re.search(r"0\.\d{4}", out)


def test_few_users_get_a_caution(made_up, capsys):
    few = printed([made_up("m", [0.1, 0.2, 0.4, 0.8])], capsys)
    assert "caution: the worst-off 30 % of 4 users are 1.2 users, too few" in " ".join(few.split())
    assert "caution" not in printed([made_up("m", np.linspace(0, 1, 90))], capsys)


@pytest.fixture
def made_up():
    def evaluation(name, scores):
        found = make(name, users=len(scores), metrics=("recall@20",))
        found.scores["recall@20"][:] = scores
        return found

    return evaluation
