"""`python -m soak NAME ...`: attack the library's promises, and keep what came out."""

import importlib
import pkgutil
import sys
import time
from typing import Annotated

import typer

import soak
from safecf.errors import choose
from soak import records
from soak.attack import Attack, Result, try_cases

FOLDER = records.RESULTS / "soak"


def attacks() -> dict[str, Attack]:
    """Return all attacks of the package by name."""
    found: dict[str, Attack] = {}
    for module in pkgutil.iter_modules(soak.__path__):
        if module.name != "__main__":
            attributes = vars(importlib.import_module(f"soak.{module.name}"))
            found |= {each.name: each for each in attributes.values() if isinstance(each, Attack)}
    return found


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Attacks; by default all.")] = None,
    cases: Annotated[int | None, typer.Option(help="Number of cases of each.")] = None,
    first: Annotated[int, typer.Option(help="Number of the first case.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the cases.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    keep: Annotated[bool, typer.Option(help="Keep the results under docs/results/soak/.")] = True,
) -> None:
    """Run attacks with many cases; a whole run takes hours."""
    known = attacks()
    failed = False
    try:
        chosen = [choose("attack", name, known) for name in names or known]
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from problem
    for attack in chosen:
        name, count = attack.name, attack.cases if cases is None else cases
        typer.echo(f"{name}: {attack.promise}")
        result = try_cases(attack, range(first, first + count), seed, jobs, Progress(count))
        typer.echo(f"\r{told(result)}")
        for number, reason in result.failures.items():
            typer.echo(f"case {number}, seed {seed}:\n{reason}", err=True)
        failed = failed or bool(result.failures)
        if keep:
            records.keep(FOLDER, name, {"promise": attack.promise, **as_json(result)})
    raise typer.Exit(failed)


def told(result: Result) -> str:
    """Return the number of cases and their outcomes, in a line."""
    outcomes = "; ".join(f"{name}: {count:,}" for name, count in result.outcomes.most_common(12))
    return (
        f"  {result.cases:,} cases in {result.seconds:.0f} s, {len(result.failures)} failed; "
        f"{outcomes}"
    )


def as_json(result: Result) -> dict[str, object]:
    """Return what is kept of a result."""
    return {
        "cases": result.cases,
        "failures": {str(number): reason for number, reason in result.failures.items()},
        "outcomes": dict(result.outcomes.most_common()),
        "seconds": round(result.seconds, 1),
    }


class Progress:
    """Tells on a terminal, once a second, how far it is."""

    def __init__(self, count: int) -> None:
        self.count, self.told = count, 0.0

    def __call__(self, result: Result) -> None:
        """Tell the number of cases so far."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.told > 1:
            self.told = now
            print(f"\r  {result.cases:,} of {self.count:,}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    typer.run(main)
