"""What is stored: finished cases in a cache, and the tables of pages under docs/results."""

import base64
import csv
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import safecf
from reproduction.experiment import ROOT, Case, Record, Result, canonical
from safecf.atomic import replace_file
from safecf.data.datasets.download import cache_folder

ARRAY = "float32"  # the key that marks an array
PACKAGES = ("safecf", "numpy", "torch")
NUMBERS = "numbers"  # the table that is stored as CSV


class Store:
    """A folder of finished cases, one file each, written whole or not at all.

    The name of a file is the sha256 of the case's key and the checksum of the data's file; for
    timed cases also of the machine and the commit. The file names the commit that made it. With
    `again`, finished cases are run anew, as timed ones are where files have changed.
    """

    def __init__(
        self,
        folder: Path | None = None,
        data: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
        again: bool = False,
    ) -> None:
        self.folder = folder or cache_folder() / "cells"
        self.data, self.alone = dict(data or {}), alone
        self.again = again or (alone and made()["commit"].endswith("-dirty"))

    def path(self, case: Case) -> Path:
        """Return the file of a case."""
        identity = [case.key, self.data.get(case.settings.get("data", ""), "")]
        if self.alone:
            identity += [made()["machine"], made()["commit"]]
        return self.folder / f"{hashlib.sha256(canonical(identity).encode()).hexdigest()}.json"

    def get(self, case: Case) -> Result | None:
        """Return the result, or None if it is missing or damaged."""
        try:
            found = json.loads(self.path(case).read_bytes())
            return Result(case, _decoded(found["record"]), found["made"])
        except Exception:  # damage can raise anything
            return None

    def put(self, case: Case, record: Record) -> None:
        """Write a result."""
        content = {"case": case.key, "made": made(), "record": _encoded(record)}
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.path(case), json.dumps(content, ensure_ascii=False).encode())


def _encoded(value: Any) -> Any:
    """Return JSON values; arrays are compressed float32 in base64."""
    if isinstance(value, dict):
        return {str(name): _encoded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, np.ndarray):
        packed = zlib.compress(np.ascontiguousarray(value, dtype="<f4").tobytes(), 6)
        return {ARRAY: base64.b64encode(packed).decode(), "shape": list(value.shape)}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            content = zlib.decompress(base64.b64decode(value[ARRAY]))
            return np.frombuffer(content, dtype="<f4").reshape(value["shape"]).astype(np.float64)
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


# Pages: NAME.json has the parts, NAME.csv the table "numbers".


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return the stored parts of a page by name; empty if there are none.

    A part has "command", "made", "options", "data", "notes", "warnings" and "tables".
    """
    file = folder / f"{name}.json"
    if not file.exists():
        return {}
    parts: dict[str, Any] = json.loads(file.read_bytes())["parts"]
    numbers = folder / f"{name}.csv"
    if numbers.exists():
        with numbers.open(encoding="utf8", newline="") as text:
            rows = [{k: _value(v) for k, v in row.items()} for row in csv.DictReader(text)]
        next(iter(parts.values()))["tables"][NUMBERS] = rows
    return parts


def write(folder: Path, name: str, new: Mapping[str, Any]) -> list[Path]:
    """Put parts into the files of a page; other parts stay as they were. Return the files."""
    parts = {part: dict(content) for part, content in (read(folder, name) | dict(new)).items()}
    texts: dict[Path, str] = {}
    for content in parts.values():
        content["tables"] = _encoded(dict(content["tables"]))
        if numbers := content["tables"].pop(NUMBERS, None):
            file = io.StringIO()
            columns = list(dict.fromkeys(column for row in numbers for column in row))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(numbers)
            texts[folder / f"{name}.csv"] = file.getvalue()
    texts[folder / f"{name}.json"] = _json({"parts": parts}) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        replace_file(path, text.encode())
    return list(texts)


def _value(text: str) -> Any:
    """Return a field of a CSV file as the number or Boolean that it is, None if it is empty."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"": None, "True": True, "False": False}.get(text, text)


def _json(value: Any, indent: str = "\n") -> str:
    """Write JSON with a line per row of a table, and per key of what has rows in it."""
    text, more = partial(json.dumps, ensure_ascii=False), indent + " "
    if isinstance(value, list) and value:
        return f"[{','.join(more + text(each) for each in value)}{indent}]"
    if isinstance(value, dict) and any(
        each and isinstance(each, dict | list) for each in value.values()
    ):
        lines = [f"{more}{text(name)}: {_json(each, more)}" for name, each in value.items()]
        return f"{{{','.join(lines)}{indent}}}"
    return text(value)


# What results were made with.


def machine() -> str:
    """Describe the CPU, its cores and the memory."""
    cpu_info, model = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    if cpu_info.exists():
        names = re.findall(r"^model name\s*:\s*(.*?)\s*$", cpu_info.read_text(), re.MULTILINE)
        model = next(iter(names), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernels = safecf._core.isas()[0]
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, kernels {kernels}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit(root: Path = ROOT) -> str:
    """Return the short hash of the commit, with "-dirty" if files other than pages changed.

    Where the files are a copy without their history, SAFECF_COMMIT names it.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    if given := os.environ.get("SAFECF_COMMIT"):
        return given
    try:
        changed = git("status", "--porcelain", "--", ".", ":!docs/*.md", ":!docs/results")
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@cache
def made() -> dict[str, str]:
    """Return versions, commit, machine and day, as of the first call in this process."""
    found = {"safecf": safecf.__version__}
    for name in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    day = datetime.now(UTC).date().isoformat()
    return {**found, "commit": commit(), "machine": machine(), "date": day}


def origins(all_made: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Count the cases by what they were made with, the day apart, of which the range is kept."""
    days: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in all_made:
        names = [name for name in (*PACKAGES, "commit", "machine") if name in each]
        key = tuple((name, each[name]) for name in names)
        days.setdefault(key, []).append(each.get("date", ""))
    return [
        {"count": len(of), **dict(key), "date": " to ".join(sorted({min(of), max(of)}))}
        for key, of in sorted(days.items(), key=lambda pair: -len(pair[1]))
    ]
