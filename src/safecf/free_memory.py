"""Free memory, to refuse work that would not fit before it begins."""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Return the free memory of the system or the container, None if it is not known."""
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
    """Return the free memory below the limit of the control group, if it has one."""
    try:
        limit = int((CONTAINER / "memory.max").read_text())
        return max(0, limit - int((CONTAINER / "memory.current").read_text()))
    except (OSError, ValueError):  # without a limit, the file holds the word "max"
        return None
