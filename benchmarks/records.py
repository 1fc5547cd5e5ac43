"""What a part of a benchmark has measured, kept as JSON so that its page can be written again."""

import json
import math
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import report

KEPT = Path(__file__).resolve().parents[1] / "build" / "benchmarks"


@dataclass(frozen=True)
class Options:
    """How a part is run; `scale` below 1 shrinks everything, to try it out."""

    scale: float
    threads: int
    repeats: int
    device: str = "cpu"

    def shape(self, users: int, items: int, interactions: int) -> tuple[int, int, int]:
        """Shrink a matrix, fewer items by the root so that it stays sparse."""
        items = max(50, round(items * math.sqrt(self.scale)))
        return (
            max(100, round(users * self.scale)),
            items,
            max(1000, round(interactions * self.scale)),
        )

    def factors(self, factors: int) -> int:
        """Shrink d by the root, to a multiple of 16."""
        return max(1, round(factors * math.sqrt(self.scale) / 16)) * 16

    @property
    def folder(self) -> Path:
        """Where measurements are kept, and, for a trial, the page as well."""
        return KEPT if self.scale == 1 else KEPT / f"scale-{self.scale:g}"

    @property
    def pages(self) -> Path:
        """Where the page and its plots go."""
        return report.RESULTS if self.scale == 1 else self.folder


def keep(folder: Path, name: str, results: dict[str, Any]) -> None:
    """Write what was measured, with command, commit, machine and time."""
    record = {
        "command": report.command(),
        "commit": report.commit(),
        "machine": report.machine(),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "results": results,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def kept(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the record of a part, or None where it has not been measured."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def origin(record: dict[str, Any]) -> str:
    """Say how a part was measured."""
    when = record["when"].replace("T", " ").replace("+00:00", " UTC")
    return (
        f"Measured by `{record['command']}` at commit `{record['commit']}`, on "
        f"{record['machine']}, {when}."
    )


def progress(text: str) -> None:
    """Tell on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)
