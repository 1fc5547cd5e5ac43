"""Commands that are interrupted, or cannot write: one line, and no file that is half written."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import safecf
from safecf.data.splits.split_files import FILES
from safecf.models.checkpoint import read_checkpoint
from soak import samples
from soak.attack import attack
from soak.mutations import Generator, pick

INTERRUPTED = 130
# Before `main`, Ctrl-C is Python's affair. The harness ignores it, and so would its children.
# A signal that reaches Python, and so has to end the command, is told to a pipe.
START = """
import os, resource, signal, sys
told = int(sys.argv.pop(1))
os.set_blocking(told, False)
signal.set_wakeup_fd(told)
signal.signal(signal.SIGINT, signal.default_int_handler)
if limit := int(sys.argv.pop(1)):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from safecf.cli import main
print("ready", file=sys.stderr, flush=True)
main()
"""

TRAINING = ["log.csv", "--heldout", "20", "-q"]
SAVED = "given.safetensors"
COMMANDS: dict[str, list[str]] = {
    "fit": [
        *("fit", "log.csv", "-q", "-m", "safer2:factors=8,iterations=40", "-o", "m.safetensors"),
        *("--checkpoint", "c.safetensors", "--resume", "c.safetensors"),
    ],
    "recommend": ["recommend", SAVED, "log.csv", "-q", "-o", "best.csv"],
    "export": ["export", SAVED, "-o", "items.npz", "--queries", "100", "-q"],
    "summary": ["data", "summary", "log.csv"],
    "split": ["data", "split", "log.csv", "--heldout", "20", "--out", "parts"],
    "evaluate": ["evaluate", *TRAINING, "-m", "safer2:factors=8,iterations=40"],
    "compare": ["compare", *TRAINING, "-m", "ials:factors=8", "-m", "safer2:factors=8"],
    "tune": [
        *("tune", *TRAINING, "-m", "ials:factors=8", "--trials", "3"),
        *("--study", "s.sqlite", "--save", "m.safetensors"),
    ],
}
RESULTS = ["--out", "o.json", "--report", "r.html"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    error: str
    heard: bool  # whether Ctrl-C reached Python


class Command:
    """A command on a small log, in a folder of its own."""

    def __init__(self, rng: Generator, folder: Path) -> None:
        self.folder = folder
        self.name = pick(rng, COMMANDS)
        self.arguments = list(COMMANDS[self.name])
        if self.name in ("evaluate", "compare", "tune"):
            self.arguments += RESULTS
        pairs = samples.matrix(0, 300, 60).tocoo()
        rows = (f"{user},{item}\n" for user, item in zip(pairs.row, pairs.col, strict=True))
        (folder / "log.csv").write_text("user,item\n" + "".join(rows), encoding="ascii")
        if SAVED in self.arguments:
            data = safecf.Interactions.from_csv(folder / "log.csv")
            saved = safecf.IALS(8, iterations=1, random_state=0)
            saved.fit(data, show_progress=False).save(folder / SAVED)

    def start(
        self, told: int, stdout: Any = subprocess.PIPE, limit: int = 0
    ) -> "subprocess.Popen[bytes]":
        """Start the command, up to the first line of `main`; `limit` is that of file sizes."""
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(told), str(limit), *self.arguments],
            cwd=self.folder,
            stdout=stdout,
            stderr=subprocess.PIPE,
            pass_fds=[told],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        )
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        return process

    def run(self, moment: float | None = None, **options: Any) -> Ended:
        """Run the command; press Ctrl-C after so many seconds."""
        reader, writer = os.pipe()
        process = self.start(writer, **options)
        os.close(writer)
        if moment is not None:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        with open(reader, "rb") as signals:
            return Ended(process.returncode, error.decode(), signal.SIGINT in signals.read())

    def check_files(self, *, complete: bool) -> None:
        """Raise unless every file is whole or missing; if `complete`, none is missing."""
        there = {each.name for each in self.folder.iterdir()}
        hidden = {each for each in there if each.startswith(".")}
        assert not hidden, f"left behind: {hidden}"
        for name, check in CHECKS.items():
            if name in there:
                check(self.folder / name)
        wanted = {each for each in CHECKS if each in self.arguments} if complete else set()
        assert wanted <= there, f"not written: {wanted - there}"


def _check_json(path: Path) -> None:
    json.loads(path.read_bytes())


def _check_page(path: Path) -> None:
    assert path.read_text(encoding="utf8").rstrip().endswith("</html>")


def _check_split(path: Path) -> None:
    assert {each.name for each in path.iterdir()} == set(FILES)


def _check_table(path: Path) -> None:
    columns = {line.count(",") for line in path.read_text(encoding="utf8").splitlines()}
    assert columns == {4}, columns


def _check_vectors(path: Path) -> None:
    with np.load(path, allow_pickle=False) as file:
        assert file["vectors"].shape[1] == 8


CHECKS: dict[str, Callable[[Path], Any]] = {
    "best.csv": _check_table,
    "items.npz": _check_vectors,
    "c.safetensors": read_checkpoint,
    "o.json": _check_json,
    "r.html": _check_page,
    "parts": _check_split,
    "m.safetensors": safecf.load,
    "s.sqlite": lambda path: path.stat(),
}


def _check_error(error: str, lines: int = 1) -> None:
    """Raise unless the command has said what is wrong in so many lines at most."""
    assert "Traceback" not in error, error
    assert 1 <= len(error.strip().splitlines()) <= lines, f"not {lines} lines: {error!r}"


@attack(
    "Ctrl-C ends a command with status 130 and one line, tune with two; no file is half written.",
    cases=200,
    seconds=120.0,
    memory=None,
)
def interrupted_commands(rng: Generator) -> str:
    """Interrupt a command at a random moment after its start."""
    with tempfile.TemporaryDirectory() as name:
        command = Command(rng, Path(name))
        seconds = {"summary": 0.6, "split": 0.8, "recommend": 0.8, "export": 0.8}.get(
            command.name, 2.5
        )
        ended = command.run(rng.uniform(0, seconds))
        expected = INTERRUPTED if ended.heard else 0
        assert ended.status == expected, f"status {ended.status}: {ended.error}"
        if ended.heard:
            _check_error(ended.error, lines=2 if command.name == "tune" else 1)
        command.check_files(complete=ended.status == 0)
        if command.name in ("tune", "fit"):  # which are to be taken up again
            again = command.run()
            assert again.status == 0, again.error
            command.check_files(complete=True)
    return f"{command.name}, status {ended.status}"


@attack(
    "Where the output cannot be shown, the files are written all the same.",
    cases=60,
    seconds=120.0,
    memory=None,
)
def commands_that_nobody_hears(rng: Generator) -> str:
    """Run a command whose standard output is full, or closed."""
    with tempfile.TemporaryDirectory() as name:
        command = Command(rng, Path(name))
        if rng.random() < 0.5:
            with open("/dev/full", "wb") as full:
                ended = command.run(stdout=full)
        else:
            reader, writer = os.pipe()
            os.close(reader)
            ended = command.run(stdout=writer)
            os.close(writer)
        assert "Traceback" not in ended.error, ended.error
        assert "Exception ignored" not in ended.error, ended.error
        command.check_files(complete=True)
    return f"{command.name}, status {ended.status}"


@attack(
    "On a full disk a command ends with one line that names the file; none is half written.",
    cases=60,
    seconds=120.0,
    memory=None,
)
def commands_on_a_full_disk(rng: Generator) -> str:
    """Run a command that may only write small files."""
    size = int(2 ** rng.uniform(0, 18))
    with tempfile.TemporaryDirectory() as name:
        command = Command(rng, Path(name))
        ended = command.run(limit=size)
        command.check_files(complete=ended.status == 0)
        if ended.status:
            assert ended.status == 2, f"status {ended.status}: {ended.error}"
            _check_error(ended.error)
            assert any(each in ended.error for each in CHECKS), f"no file is named: {ended.error}"
    return f"{command.name}, status {ended.status}"
