"""Outputs that break, targets that cannot be written, and names that hurt."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from safecf import EASE, Evaluation
from tests.cli.processes import GIVEN, MAIN, start

FILES = {"--report": Path("r.html"), "--out": Path("o.json")}
OPTIONS = [part for pair in FILES.items() for part in pair]


def assert_written():
    assert "</html>" in FILES["--report"].read_text()
    assert Evaluation.from_dict(json.loads(FILES["--out"].read_text())).model == "IALS"


def test_files_are_written_though_nobody_reads_the_output(clicks):
    reader, writer = os.pipe()
    os.close(reader)
    found = start("evaluate", clicks, *GIVEN, *OPTIONS, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")
    assert_written()


def test_files_are_written_though_the_output_is_full(clicks):
    said = "safecf: cannot write to standard output: No space left on device; "
    for command in (["--help"], ["evaluate", clicks, *GIVEN, *OPTIONS]):
        with Path("/dev/full").open("w") as full:
            found = start(*command, stdout=full, stderr=subprocess.PIPE)
        assert (found.returncode, found.stderr) == (2, f"{said}write it to another place\n")
    assert_written()


def test_files_are_written_though_the_output_is_closed(clicks):
    """As `safecf ... >&-` in a shell."""
    said = "safecf: cannot write to standard output: it is closed; write it to another place\n"
    for command in (["--version"], ["evaluate", clicks, *GIVEN, *OPTIONS]):
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", MAIN, *map(str, command)]
        found = subprocess.run(closed, check=False, timeout=120, text=True, stderr=subprocess.PIPE)
        assert (found.returncode, found.stderr) == (2, said)
    assert_written()


@pytest.mark.parametrize("code", [MAIN, f"import sys; sys.stderr = None; {MAIN}"])
def test_a_closed_or_full_stderr_changes_nothing(clicks, code):
    given = ("data", "split", clicks, *GIVEN[:6], "--out", "split")
    with Path("/dev/full").open("w") as full:
        found = start(*given, code=code, stdout=subprocess.PIPE, stderr=full)
    assert (found.returncode, "train.csv" in found.stdout) == (0, True)
    assert Path("split/train.csv").exists()


def test_a_stream_without_the_characters_gets_escapes(clicks):
    given = ("evaluate", clicks, *GIVEN, "--out", "ü.json")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    found = start(*given, env=environment, **pipes)
    assert (found.returncode, found.stderr) == (0, "")
    assert "written: \\xfc.json" in found.stdout


@pytest.mark.parametrize("failing", [{1}, {1, 2}])
def test_a_failing_report_does_not_stop_the_numbers(run, clicks, monkeypatch, failing):
    """The report is written first."""
    calls, fsync = [], os.fsync

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) in failing:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = run("evaluate", clicks, *GIVEN, *OPTIONS)
    assert (code, err.count("\n")) == (2, 1)
    assert "No space left on device" in err
    assert "│ IALS" in out
    named = [str(file) for file in FILES.values()]
    lost = named[: len(failing)]
    assert [file in err for file in named] == [file in lost for file in named]
    assert [f"written: {file}" in out for file in named] == [file not in lost for file in named]
    assert [Path(file).exists() for file in named] == [file not in lost for file in named]


def test_a_target_that_cannot_be_written_is_named(run, clicks, monkeypatch):
    given = ("evaluate", clicks, *GIVEN, "--out", "file")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
        Path("file").touch()
        code, _, err = run(*given)
        assert (code, "file: it is write-protected; choose another place" in err) == (2, True)

    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    code, _, err = run(*given[:-1], "new/o.json")
    assert (code, "cannot write new/o.json: Read-only file system; choose" in err) == (2, True)


@pytest.mark.parametrize("name", ["out[/a].html", "[red]x", ":smile:.html", "a\\["])
def test_paths_are_printed_as_they_are(done, clicks, name):
    assert f"written: {name}\n" in done("evaluate", clicks, *GIVEN, "--report", name)
    assert Path(name).is_file()


@pytest.mark.parametrize("columns", ["40", "200"])
def test_long_and_hostile_names_stay_distinct(done, clicks, log, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    model = EASE().fit(log.strong_generalization(heldout=40).training, show_progress=False)
    names = [f"[red]m\x1b[31m\n{100 * 'x'}{end}" for end in "ab"]
    for name in names:
        model.save(f"{name}.safetensors")
    given = [word for name in names for word in ("-m", f"{name}.safetensors")]
    out = done("compare", clicks, *GIVEN[:7], *given, "--out", "o\x1b[2J\n.json")
    assert "\x1b" not in out
    assert "…" not in out
    shown = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    table = "".join(shown).replace(" ", "")
    for name in names:
        assert f"EASE({name})".replace("\x1b", "\\x1b").replace("\n", "\\n") in table
    assert "written: o\\x1b[2J\\n.json\n" in out


def test_few_users_get_a_caution(done, clicks):
    few = done("evaluate", clicks, *GIVEN[:4], "--heldout", 4, *GIVEN[6:])
    assert "caution: the worst-off 30 % of 4 users are 1.2 users, too few" in " ".join(few.split())
    assert "caution" not in done("evaluate", clicks, *GIVEN[:4], "--heldout", 90, *GIVEN[6:])
