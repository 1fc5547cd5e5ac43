"""Results as JSON, with the command, commit, machine and time that made them; and their tables."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reproduction.experiment import RESULTS, ROOT
from reproduction.store import commit, machine

__all__ = ["RESULTS", "command", "keep", "table"]


def keep(folder: Path, name: str, results: dict[str, Any]) -> None:
    """Write what was found, with command, commit, machine and time."""
    record = {
        "command": command(),
        "commit": commit(),
        "machine": machine(),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "results": results,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def command() -> str:
    """Name the command that is running, as in `python -m soak`."""
    file = Path(sys.argv[0]).resolve()
    inside = file.relative_to(ROOT) if file.is_relative_to(ROOT) else Path(file.name)
    name = ".".join(part for part in inside.with_suffix("").parts if part != "__main__")
    return " ".join(("python -m", name, *sys.argv[1:]))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
