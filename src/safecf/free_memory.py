"""Free memory, and what training needs, to refuse work that would not fit before it begins."""

import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

MEMINFO = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")
STATM = Path("/proc/self/statm")
# What is smaller is not worth the time to look.
ALWAYS_FREE = 2**26


def available_bytes() -> int | None:
    """Return the free memory of system, container and process, None if it is not known."""
    found = [each for each in (_system(), _container(), _process()) if each is not None]
    return min(found, default=None)


def check_free(needed: int, what: str, remedy: str) -> None:
    """Raise MemoryError if `what` needs more bytes than are free, as far as that is known.

    >>> check_free(10**15, "the matrix", "use fewer users")
    Traceback (most recent call last):
    MemoryError: the matrix needs 1,000,000 GB of memory, while 14.2 GB are free; use fewer users
    """
    free = None if needed < ALWAYS_FREE else available_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} needs {gigabytes(needed)} of memory, while {gigabytes(free)} are free; "
            f"{remedy}"
        )


def training_bytes(
    users: int, items: int, interactions: int, factors: int, threads: int, *, blocks: bool = False
) -> int:
    """The formula of docs/memory.md for the training of SAFER2, beyond the interactions themselves.

    By `blocks`, for SAFER2++, where scores and places come on top:

    factors + the rotated fixed side or the folded-in users + the items of the last epoch + vectors
    + partial Gramians, or one with its eigenvectors + scratch of the threads
    """
    width = -(-factors // 32) * 32
    rotated = max(2 * width * max(users, items), 4 * factors * users + 4 * width * items)
    kept = 4 * factors * items
    gramians = factors**2 * max(48, 4 * min(32, 2**26 // factors**2))
    scratch = threads * 4 * (192 * width + users)
    places = 8 * interactions if blocks else 0
    fetched = fetched_bytes(users, items, factors)
    return fetched + rotated + kept + gramians + scratch + places


def fetched_bytes(users: int, items: int, factors: int) -> int:
    """The factors of both sides, and vectors: what the host holds of a model trained on a GPU.

    >>> fetched_bytes(users=1000, items=100, factors=8)
    211200
    """
    return (4 * factors + 160) * (users + items)


def gigabytes(size: int) -> str:
    """Return so many bytes in GB, as text.

    >>> gigabytes(14_200_000_000)
    '14.2 GB'
    """
    return f"{size / 1e9:,.0f} GB" if size >= 1e11 else f"{size / 1e9:,.1f} GB"


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
        used = int((CONTAINER / "memory.current").read_text())
    except (OSError, ValueError):  # without a limit, the file holds the word "max"
        return None
    return max(0, limit - max(0, used - _file_cache()))


def _process() -> int | None:
    """Return the address space that is left below the limit of the process, if it has one."""
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(STATM.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
    return max(0, limit - used)


def _file_cache() -> int:
    """Return the bytes of cached files that the control group gives up when memory is needed."""
    try:
        for line in (CONTAINER / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0
