"""`python -m soak.page`: write docs/results/soak.md from the kept results."""

import json
from typing import Any

from benchmarks import report
from soak.__main__ import FOLDER

MOST_OUTCOMES = 4


def main() -> None:
    """Write the page: the attacks, then the fuzzing."""
    kept = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    attacks = {name: each for name, each in kept.items() if "cases" in each["results"]}
    blocks = [
        "Attacks with random cases, and coverage-guided fuzzing. What each of them promises, and "
        "what they found before, is in [docs/reliability.md](../reliability.md).",
        "## Attacks",
        report.table(
            ["attack", "cases", "failed", "outcomes", "seconds", "run"],
            [[f"`{name}`", *_attack(each), _place(each, kept)] for name, each in attacks.items()],
        ),
    ]
    for name, each in kept.items():
        if name not in attacks:
            targets = each["results"]["targets"].items()
            rows = [[f"`{target}`", *_target(found)] for target, found in targets]
            blocks += [
                f"## {name.replace('-', ' ').capitalize()}",
                f"Run {_place(each, kept)}.",
                report.table(["target", "executions", "failed", "edges", "seconds"], rows),
            ]
    blocks += ["## Runs", *(_run(number, run) for number, run in enumerate(_runs(kept), 1))]
    text = "\n\n".join(["# Attacks on the promises", *blocks])
    (report.RESULTS / "soak.md").write_text(text + "\n")


def _attack(record: dict[str, Any]) -> list[str]:
    results = record["results"]
    counts = list(results["outcomes"].items())
    outcomes = [f"{name} {count:,}" for name, count in counts[:MOST_OUTCOMES]]
    if len(counts) > MOST_OUTCOMES:
        outcomes.append(f"{len(counts) - MOST_OUTCOMES} others")
    failed = len(results["failures"])
    return [f"{results['cases']:,}", f"{failed}", "; ".join(outcomes), f"{results['seconds']:.0f}"]


def _target(found: dict[str, Any]) -> list[str]:
    counts = found["executions"], len(found["failures"]), found["edges"], round(found["seconds"])
    return [f"{count:,}" for count in counts]


def _key(record: dict[str, Any]) -> tuple[str, str]:
    return record["commit"], record["machine"]


def _runs(kept: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted({_key(each) for each in kept.values()})


def _place(record: dict[str, Any], kept: dict[str, dict[str, Any]]) -> str:
    return f"{_runs(kept).index(_key(record)) + 1}: `{record['command']}`"


def _run(number: int, run: tuple[str, str]) -> str:
    return f"{number}. Commit `{run[0]}`, on {run[1]}."


if __name__ == "__main__":
    main()
