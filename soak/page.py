"""`python -m soak.page`: write docs/results/soak.md from the kept results."""

import json
from pathlib import Path
from typing import Any

from soak import records
from soak.__main__ import FOLDER

MOST_OUTCOMES = 4


def main() -> None:
    """Write the page: the attacks, then the fuzzing."""
    attacks, native, parsers = (_kept(FOLDER / name) for name in ("", "native", "parsers"))
    runs = sorted({_key(each) for each in [*attacks, *native, *parsers]})
    targets = ["target", "executions", "failed", "edges", "seconds", "run"]
    blocks = [
        "# Attacks on the promises",
        "Attacks with random cases, and coverage-guided fuzzing. What each of them promises, and "
        "what they found before, is in [docs/reliability.md](../reliability.md).",
        "## Attacks",
        records.table(
            ["attack", "cases", "failed", "outcomes", "seconds", "run"],
            [[each["name"], *_attack(each["results"]), _place(each, runs)] for each in attacks],
        ),
        "## Fuzzing of native entries",
        "Of `changing` ones, another thread overwrites the arrays meanwhile.",
        records.table(targets, [_target(each, runs) for each in native]),
        "## Fuzzing of parsers",
        records.table(targets, [_target(each, runs) for each in parsers]),
        "## Runs",
        *(f"{at}. Commit `{run[0]}`, on {run[1]}." for at, run in enumerate(runs, 1)),
    ]
    (records.RESULTS / "soak.md").write_text("\n\n".join(blocks) + "\n")


def _kept(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.json"))
    return [{"name": f"`{path.stem}`", **json.loads(path.read_text())} for path in files]


def _attack(results: dict[str, Any]) -> list[str]:
    counts = list(results["outcomes"].items())
    outcomes = [f"{name} {count:,}" for name, count in counts[:MOST_OUTCOMES]]
    if len(counts) > MOST_OUTCOMES:
        outcomes.append(f"{len(counts) - MOST_OUTCOMES} others")
    failed = len(results["failures"])
    return [f"{results['cases']:,}", f"{failed}", "; ".join(outcomes), f"{results['seconds']:.0f}"]


def _target(record: dict[str, Any], runs: list[tuple[str, str]]) -> list[str]:
    found = record["results"]
    counts = found["executions"], len(found["failures"]), found["edges"], round(found["seconds"])
    return [record["name"], *(f"{count:,}" for count in counts), _place(record, runs)]


def _key(record: dict[str, Any]) -> tuple[str, str]:
    return record["commit"], record["machine"]


def _place(record: dict[str, Any], runs: list[tuple[str, str]]) -> str:
    return f"{runs.index(_key(record)) + 1}: `{record['command']}`"


if __name__ == "__main__":
    main()
