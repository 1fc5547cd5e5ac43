"""Work in a forked process that may be killed, interrupted, or denied the disk."""

import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

INTERRUPTED = 130
PATIENCE = 60.0  # seconds


class Child:
    """A forked process that works in a folder; its exit status is 0, 130 after Ctrl-C, or 1.

    Only a process that has not used threads may fork and go on to use them: train in children
    alone.
    """

    def __init__(self, work: Callable[[], None], log: Path) -> None:
        self.log = log
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_run(work, log))

    def send(self, number: int) -> None:
        """Send a signal; nothing happens if the process has ended."""
        if self.wait(0) is None:
            os.kill(self.pid, number)

    def wait(self, until: float = PATIENCE) -> int | None:
        """Return the exit status, negative after a signal; None if it still runs after so long."""
        end = time.monotonic() + until
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                break
            else:
                time.sleep(0.0005)
        return self.status

    def finish(self) -> int:
        """Return the exit status; raise if it takes too long."""
        status = self.wait()
        if status is None:
            self.send(signal.SIGKILL)
            self.wait()
            raise TimeoutError(f"the child takes longer than {PATIENCE:g} s")
        return status

    def problem(self) -> str:
        """Return the traceback of a child that failed."""
        return self.log.read_text(encoding="utf8") if self.log.exists() else ""


def _run(work: Callable[[], None], log: Path) -> int:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException:
        log.write_text(traceback.format_exc(), encoding="utf8")
        return 1
    return 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system of so many bytes at a folder; this needs root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def can_mount(folder: Path) -> bool:
    """Whether this process may mount a file system."""
    try:
        with small_disk(folder, 1 << 16):
            return True
    except (OSError, subprocess.SubprocessError):
        return False
