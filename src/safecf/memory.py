"""Memory: how much of it is free, so that what cannot fit is refused before the work begins."""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Return what the system, or the container, has left; None where it does not say."""
    found = [each for each in (_system(), _container()) if each is not None]
    return min(found, default=None)


def _system() -> int | None:
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _container() -> int | None:
    """Return what is left below the limit of the control group, if it has one."""
    try:
        limit = int((CONTAINER / "memory.max").read_text())
        return max(0, limit - int((CONTAINER / "memory.current").read_text()))
    except (OSError, ValueError):  # no limit is written as the word "max"
        return None
