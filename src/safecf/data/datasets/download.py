"""Downloads into a cache, with a progress bar; they are resumed and their checksum is verified."""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from rich.progress import DownloadColumn, TransferSpeedColumn

from safecf.progress import progress_bar

BYTES_PER_BLOCK = 2**18
TIMEOUT_SECONDS = 30
HTTP_PARTIAL_CONTENT, HTTP_RANGE_NOT_SATISFIABLE = 206, 416


def cache_folder() -> Path:
    """Return the folder for downloads: SAFECF_CACHE, or the cache folder of the system."""
    chosen = os.environ.get("SAFECF_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "safecf"


def fetch(url: str, target: Path, *, md5: str | None = None, show_progress: bool = True) -> Path:
    """Download `url`; `target` exists only once the file is complete and its checksum is right.

    An interrupted download is kept as `target` + ".part"; the next call resumes it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        _resume(url, part, show_progress=show_progress)
    except (OSError, http.client.HTTPException) as problem:
        of_network = isinstance(problem, urllib.error.URLError | http.client.HTTPException)
        if not of_network and getattr(problem, "filename", None) is not None:
            raise
        reason = getattr(problem, "reason", None) or problem
        raise ConnectionError(
            f"cannot download {url} ({reason}); try again to go on from where it stopped, or get "
            f"the file in another way and pass path=..., or put it at {target}"
        ) from problem
    if md5 is not None:
        with part.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
        if found.hexdigest() != md5:
            part.unlink()
            raise ValueError(
                f"the download of {url} is damaged: its md5 sum is {found.hexdigest()}, not {md5}; "
                "it was removed, try again"
            )
    part.replace(target)
    return target


def _resume(url: str, part: Path, *, show_progress: bool) -> None:
    """Append the missing bytes of `url` to `part`."""
    start = part.stat().st_size if part.exists() else 0
    try:
        answer = _request(url, start)
    except urllib.error.HTTPError as problem:
        problem.close()
        if problem.code != HTTP_RANGE_NOT_SATISFIABLE:
            raise
        if problem.headers.get("Content-Range") == f"bytes */{start}":
            return  # the part is complete
        start, answer = 0, _request(url, 0)
    with answer:
        if answer.status == HTTP_PARTIAL_CONTENT:
            _check_range(answer, start)
        else:
            start = 0  # the server sends the whole file
        length = answer.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        done = start
        with (
            part.open("ab" if start else "wb") as file,
            progress_bar(
                Path(part.stem).name,
                start,
                total,
                DownloadColumn(),
                TransferSpeedColumn(),
                show=show_progress,
            ) as draw,
        ):
            while block := answer.read(BYTES_PER_BLOCK):
                file.write(block)
                done += len(block)
                draw(done)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and done != total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _request(url: str, start: int) -> Any:
    headers = {"User-Agent": "safecf", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)


def _check_range(answer: Any, start: int) -> None:
    """Raise unless the answer begins at the byte that was asked for."""
    if not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        raise ConnectionError(f"the server does not continue at byte {start:,}")
