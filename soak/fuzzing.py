"""`python -m soak.fuzzing`: coverage-guided fuzzing of the native entries and of all parsers.

The native entries are those of tests/cpp/fuzz, which `make fuzz` builds, each also while a second
thread overwrites its arrays; the parsers are those of `soak.targets`. A target runs in `--shards`
processes, which share the executions and what they find.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from soak import records
from soak.__main__ import FOLDER

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "fuzz"
FAILED = BUILT / "failed"
SCRIBBLE = "SAFECF_SCRIBBLE"  # makes a second thread overwrite the arrays
LIMITS = ("-rss_limit_mb=4096", "-print_final_stats=1")
LINES_OF_A_FAILURE = 40


@dataclass(frozen=True)
class Target:
    """What is fuzzed: its name, the command to which libFuzzer's options are added, and more."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Fuzzed:
    """The executions of a target, the edges of its code that they reached, and failures."""

    executions: int = 0
    edges: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, log: str, status: int) -> None:
        """Count a run of libFuzzer by what it printed."""
        self.executions += max(map(int, re.findall(r"executed_units: +(\d+)", log)), default=0)
        self.edges = max(self.edges, *map(int, re.findall(r"cov: (\d+)", log)), 0)
        if status or not self.edges:  # without edges, nothing is guided
            self.failures.append("\n".join(log.splitlines()[-LINES_OF_A_FAILURE:]))


def native_targets() -> list[Target]:
    """Return the targets that are built, each also with arrays that change."""
    files = sorted(path for path in BUILT.glob("fuzz_*") if path.is_file())
    names = [(file, file.name.removeprefix("fuzz_")) for file in files]
    return [Target(name, (str(file), "-max_len=400")) for file, name in names] + [
        Target(f"{name}, changing", (str(file), "-max_len=400"), {SCRIBBLE: "1"})
        for file, name in names
    ]


def parser_targets() -> list[Target]:
    """Return the parsers."""
    if find_spec("atheris") is None:
        typer.echo("parsers are skipped: there is no Atheris; try make fuzz")
        return []
    from soak.targets import TARGETS  # noqa: PLC0415

    return [Target(name, (sys.executable, "-m", "soak.parsers", name)) for name in TARGETS]


KINDS: dict[str, Callable[[], list[Target]]] = {"native": native_targets, "parsers": parser_targets}


def fuzz(target: Target, runs: int, shards: int, seconds: int) -> Fuzzed:
    """Run the target so many times in all, or until the time is over; 0 is no limit."""
    begin, found = time.perf_counter(), Fuzzed()
    FAILED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:

        def shard(seed: int) -> tuple[str, int]:
            options = (
                *LIMITS,
                f"-runs={-(-runs // shards)}",
                f"-seed={seed}",
                f"-max_total_time={seconds}",
            )
            place = f"-artifact_prefix={FAILED}/{target.name.replace(', ', '-')}-"
            done = subprocess.run(
                [*target.command, *options, place, corpus],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                cwd=ROOT,
                env=os.environ | target.environment,
            )
            return done.stdout, done.returncode

        with ThreadPoolExecutor(shards) as pool:
            for log, status in pool.map(shard, range(1, shards + 1)):
                found.add(log, status)
    found.seconds = time.perf_counter() - begin
    return found


def main(
    kinds: Annotated[
        list[str] | None, typer.Argument(help="native, parsers; by default both")
    ] = None,
    runs: Annotated[int, typer.Option(help="Executions of each target.")] = 1_000_000,
    only: Annotated[str, typer.Option(help="Targets whose names have this pattern.")] = "",
    jobs: Annotated[int, typer.Option(help="Targets at a time.")] = 2,
    shards: Annotated[int, typer.Option(help="Processes of a target.")] = 1,
    seconds: Annotated[int, typer.Option(help="Most seconds of each target; 0 is no limit.")] = 0,
    keep: Annotated[bool, typer.Option(help="Keep the results under docs/results/soak/.")] = True,
) -> None:
    """Fuzz, and keep the numbers of executions."""
    failed = False
    for kind in kinds or KINDS:
        targets = [each for each in KINDS[kind]() if re.search(only, each.name)]

        def run(target: Target, kind: str = kind) -> bool:
            found = fuzz(target, runs, shards, seconds)
            if keep:
                records.keep(FOLDER / kind, target.name.replace(", ", "-"), vars(found))
            told = "" if not found.failures else f"; failed:\n{found.failures[0]}"
            typer.echo(
                f"{target.name:28} {found.executions:>11,} executions in {found.seconds:.0f} s, "
                f"{found.edges:,} edges{told}"
            )
            return bool(found.failures)

        with ThreadPoolExecutor(jobs) as pool:
            failed = any(list(pool.map(run, targets))) or failed
    raise typer.Exit(failed)


if __name__ == "__main__":
    typer.run(main)
