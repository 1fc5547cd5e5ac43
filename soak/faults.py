"""Training that is killed, interrupted or runs out of disk: it goes on to the same bits."""

import hashlib
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from safecf import ERMMF, IALS, IALSPP, SAFER2, SAFER2CG, SAFER2PP, CVaRMF, Interactions
from safecf.models.checkpoint import read_checkpoint
from soak import samples
from soak.attack import attack
from soak.children import INTERRUPTED, Child, can_mount, small_disk
from soak.guard import is_ours
from soak.mutations import Generator, pick

KINDS: dict[str, Callable[..., Any]] = {
    "SAFER2": SAFER2,
    "SAFER2 with groups": SAFER2,
    "SAFER2CG": SAFER2CG,
    "SAFER2PP": SAFER2PP,
    "IALS": IALS,
    "IALSPP": IALSPP,
    "ERMMF": ERMMF,
    "CVaRMF": CVaRMF,
    "CVaRMF with Adam": CVaRMF,
}
MOST_FAULTS = 6
NAME = "run.safetensors"


class Training:
    """A training drawn at random, in a folder of its own."""

    def __init__(self, rng: Generator, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self.kind = pick(rng, KINDS)
        users, items = int(rng.integers(50, 400)), int(rng.integers(20, 200))
        self.matrix = samples.matrix(int(rng.integers(2**31)), users, items)
        self.labels = [f"group {n % 5}" for n in range(users)]
        self.options: dict[str, Any] = {
            "factors": int(rng.integers(2, 33)),
            "iterations": int(rng.integers(5, 30)),
            "random_state": int(rng.integers(2**31)),
            "num_threads": int(rng.integers(1, 3)),
        }
        if self.kind.endswith("Adam"):
            self.options |= {"optimizer": "adam", "step_size": 0.05}
        self.begun, self.ended = folder / "begun", folder / "ended"
        self.heard = folder / "heard"  # written when Ctrl-C reaches Python during the training

    def fit(self, **options: Any) -> None:
        """Train, and write a digest of the model."""
        groups = self.labels if self.kind.endswith("groups") else None
        model = KINDS[self.kind](**self.options)
        data = Interactions.from_csr(self.matrix)
        signal.signal(signal.SIGINT, self.hear)
        self.begun.write_text(str(time.monotonic()), encoding="ascii")
        try:
            model.fit(data, False, user_groups=groups, **options)
        finally:
            self.ended.write_text(str(time.monotonic()), encoding="ascii")
        (self.folder / "digest").write_text(digest(model), encoding="ascii")

    def hear(self, *_: Any) -> None:
        """Take note of Ctrl-C, and let it end the training."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.heard.write_text(str(self.check_checkpoint()), encoding="ascii")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt

    def digest(self) -> str:
        """Return what the last training that came to its end wrote."""
        return (self.folder / "digest").read_text(encoding="ascii")

    def child(self, work: Callable[[], None]) -> Child:
        """Begin some work in a process of its own."""
        for mark in (self.begun, self.ended, self.heard):
            mark.unlink(missing_ok=True)
        return Child(work, self.folder / "log")

    def go_on(self) -> None:
        """Train from where the checkpoint is, if there is one."""
        self.fit(checkpoint=self.path, resume=self.path)

    def reference(self) -> tuple[str, float]:
        """Return the digest and the seconds of a training without a break."""
        child = self.child(self.fit)
        assert child.finish() == 0, child.problem()
        begun, ended = (
            float(mark.read_text(encoding="ascii")) for mark in (self.begun, self.ended)
        )
        return self.digest(), ended - begun

    def check_checkpoint(self) -> int:
        """Return the epoch of the checkpoint, 0 if there is none; it can be read at any time."""
        return read_checkpoint(self.path)[1].epoch if self.path.exists() else 0

    def check_end(self, reference: str) -> None:
        """Train to the end; raise unless the bits are the same and nothing is left behind."""
        child = self.child(self.go_on)
        assert child.finish() == 0, child.problem()
        assert self.digest() == reference, "other bits than without the break"
        known = {NAME, "log", "digest", self.begun.name, self.ended.name, self.heard.name}
        left = {each.name for each in self.folder.iterdir()} - known
        assert not left, f"left behind: {left}"


def digest(model: Any) -> str:
    """Return a checksum of a trained model, without its times."""
    found = hashlib.sha256()
    for array in (model.user_factors, model.item_factors, model.user_weights):
        found.update(np.ascontiguousarray(array).data)
    for each in model.history:
        found.update(repr({k: v for k, v in vars(each).items() if k != "seconds"}).encode())
    return found.hexdigest()


@attack(
    "Training that is killed at any moment goes on to the same bits, and leaves nothing behind.",
    cases=50,
    seconds=300.0,
    memory=None,
)
def killed_training(rng: Generator) -> str:
    """Kill a training a few times, at random or while its checkpoint is written; then resume."""
    with tempfile.TemporaryDirectory() as name:
        run = Training(rng, Path(name))
        reference, seconds = run.reference()
        kills = 0
        for _ in range(rng.integers(1, MOST_FAULTS + 1)):
            child = run.child(run.go_on)
            if rng.random() < 0.5:
                child.wait(rng.uniform(0, 1.2 * seconds))
            else:
                _wait_for_write(run, child, int(rng.integers(1, 6)))
            child.send(signal.SIGKILL)
            status = child.finish()
            assert status in (0, -signal.SIGKILL), child.problem()
            kills += status != 0
            run.check_checkpoint()
        run.check_end(reference)
    return f"{kills} kills"


def _wait_for_write(run: Training, child: Child, number: int) -> None:
    """Wait until a temporary file is seen in the folder for the given time."""
    end = time.monotonic() + 2
    seen: set[str] = set()
    while time.monotonic() < end and len(seen) < number:
        with os.scandir(run.folder) as entries:
            seen |= {each.name for each in entries if each.name.startswith(".")}


@attack(
    "Ctrl-C ends training within an epoch; the checkpoint is whole, and leads to the same bits.",
    cases=100,
    seconds=300.0,
    memory=None,
)
def interrupted_training(rng: Generator) -> str:
    """Interrupt a training a few times, once or twice each; then resume."""
    with tempfile.TemporaryDirectory() as name:
        run = Training(rng, Path(name))
        reference, seconds = run.reference()
        interrupts = 0
        for _ in range(rng.integers(1, MOST_FAULTS + 1)):
            child = run.child(run.go_on)
            while not run.begun.exists():
                assert child.wait(0) is None, child.problem()
            child.wait(rng.uniform(0, 1.1 * seconds))
            child.send(signal.SIGINT)
            if rng.random() < 0.2:
                child.wait(rng.uniform(0, 0.1 * seconds))
                child.send(signal.SIGINT)
            status = child.finish()
            assert status in (0, INTERRUPTED), child.problem()
            epoch = run.check_checkpoint()
            if run.heard.exists():
                assert status, "Ctrl-C was swallowed"
                heard = int(run.heard.read_text(encoding="ascii"))
                assert epoch <= heard + 1, f"Ctrl-C in epoch {heard + 1} ended epoch {epoch + 1}"
            interrupts += status != 0
        run.check_end(reference)
    return f"{interrupts} interrupts"


@attack(
    "On a full disk training ends with an error; the last checkpoint leads to the same bits.",
    cases=100,
    seconds=300.0,
    memory=None,
)
def training_on_a_full_disk(rng: Generator) -> str:
    """Train with a limit of file sizes, or on a disk that is too small; then resume elsewhere."""
    with tempfile.TemporaryDirectory() as name:
        run = Training(rng, Path(name))
        reference, _ = run.reference()
        whole = run.child(run.go_on)
        assert whole.finish() == 0, whole.problem()
        size = run.path.stat().st_size
        run.path.unlink()
        if rng.random() < 0.5 and can_mount(_made(run.folder / "disk")):
            told = _on_a_small_disk(run, int(rng.uniform(0.2, 3) * size))
        else:
            told = _with_a_limit(run, int(rng.uniform(0, 1.1) * size))
        if (run.folder / "disk").exists():
            (run.folder / "disk").rmdir()
        run.check_end(reference)
    return told


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _on_a_small_disk(run: Training, size: int) -> str:
    disk, path = run.folder / "disk", run.path
    with small_disk(disk, size):
        run.path = disk / NAME
        child = run.child(lambda: _expecting_errors(run.go_on))
        assert child.finish() == 0, child.problem()
        epoch = run.check_checkpoint()
        assert {each.name for each in disk.iterdir()} <= {NAME}, "left behind"
        if epoch:
            path.write_bytes(run.path.read_bytes())
    run.path = path
    return f"small disk, {'a' if epoch else 'no'} checkpoint"


def _with_a_limit(run: Training, size: int) -> str:
    """Let only the first epochs write the checkpoint, then refuse files of its size."""
    first = Training.go_on

    def work() -> None:
        run.options["iterations"] //= 2
        first(run)
        run.options["iterations"] *= 2
        run.options["iterations"] += run.options["iterations"] % 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        _expecting_errors(run.go_on)

    before = run.options["iterations"]
    child = run.child(work)
    status = child.finish()
    run.options["iterations"] = before
    assert status == 0, child.problem()
    assert run.check_checkpoint() >= before // 2
    return "limit of file sizes"


def _expecting_errors(work: Callable[[], None]) -> None:
    """Let errors of ours about the file pass."""
    try:
        work()
    except OSError as problem:
        if not is_ours(problem) or NAME not in str(problem):
            raise
