"""The command line of experiments and benchmarks: plan, run, store, write pages."""

import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from reproduction import data, page, store
from reproduction.experiment import COUNTS, FLAGS, RESULTS, Experiment, Options, Result
from reproduction.run import run_cases
from safecf.errors import choose, message_of

NUMBER = re.compile(r"[-+.\d]*\d%?")
SHOWN = 5  # kinds of warnings that are listed
OTHERS = ("data", "scale", "threads", "device", "presets")
ERRORS = (ValueError, OSError, ImportError, MemoryError)  # that the user can correct


def run(experiment: Experiment, options: Options, given: Namespace) -> bool:
    """Run the cases that are missing, store their tables, write the page; say if all went well.

    A part is stored if none of its cases failed.
    """
    name = experiment.page(options)
    bad: set[str] = set()
    files: list[Path] = []
    if not given.render:
        results, bad, sums = _results(experiment, options, given)
        parts: dict[str, list[Result]] = {} if experiment.parts or bad else {"": []}
        for each in results:
            parts.setdefault(each.case.part, []).append(each)
        new = {
            part: _part(experiment, found, replace(options, parts=(part,) * bool(part)), sums)
            for part, found in parts.items()
            if part not in bad
        }
        if not new:
            print(f"{experiment.name}: no page was written")
            return False
        files = store.write(given.output, name, new)
    if not given.rows:
        files += page.render(experiment, name, given.output)
    for file in files:
        print(f"written: {file}")
    return not bad


def _results(
    experiment: Experiment, options: Options, given: Namespace
) -> tuple[list[Result], set[str], dict[str, str]]:
    """Return all results, the parts in which cases failed, and the checksums of the data."""
    parts = options.parts
    cases = [each for each in experiment.cases(options) if not parts or each.part in parts]
    names = {case.settings["data"] for case in cases} if experiment.data else set()
    files = {name: file for name in sorted(names) if (file := data.find(name, given.path))}
    sums = {name: data.checksum(file) for name, file in files.items()}
    cache = store.Store(given.cells, sums, alone=experiment.alone, again=given.again)
    data.LOCATIONS.update({name: str(file) for name, file in files.items()})
    results: list[Result] = []
    bad: set[str] = set()
    while cases and not bad:
        found = run_cases(cases, cache, experiment.name, given.jobs, not given.quiet)
        for line in found.report():
            print(line)
        results += found.results.values()
        bad = {case.part for case, _ in found.failures}
        done = {(each.case.key, each.label) for each in results}
        more = experiment.then(results, options) if experiment.then and not bad else ()
        cases = [case for case in more if (case.key, case.label) not in done]
    return results, bad, sums


def _part(
    experiment: Experiment, results: list[Result], options: Options, sums: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything that is stored of a part."""
    smaller = experiment.reduced(options)
    notes = [f"**A smaller run: {', '.join(smaller)}.**"] if smaller else []
    kinds: dict[str, list[str]] = {}
    for each in results:
        for text in each.record.get("warnings", ()):
            kinds.setdefault(NUMBER.sub("", text), []).append(text)  # numbers in them may differ
    most = sorted(kinds.values(), key=len, reverse=True)[:SHOWN]
    return {
        "command": experiment.command(options),
        "made": store.origins([each.made for each in results] or [store.made()]),
        "options": {name: each for name, each in asdict(options).items() if name != "presets"},
        "data": {name: each[:16] for name, each in sums.items()},
        "notes": notes,
        "warnings": [{"count": len(texts), "example": texts[0]} for texts in most],
        "cases": len(results),
        "tables": experiment.tables(results, options),
    }


def load(names: Mapping[str, str], name: str) -> Experiment:
    """Return an experiment by its name; `names` has where each is, as in "package.module:NAME"."""
    found: Experiment = resolve_name(choose("experiment", name, names))
    return found


# Name, type, what it stands for in the help, and the help. The type bool is that of a flag.
ARGUMENTS: tuple[tuple[str, Any, str, str], ...] = (
    ("all", bool, "", "run all"),
    ("list", bool, "", "list all and exit"),
    ("data", str, "NAME", "data set such as ml-1m, or tiny to try a command [the first accepted]"),
    ("path", Path, "PATH", "archive, folder or file of the data set [SAFECF_DATA, or downloaded]"),
    ("splits", int, "N", "run fewer splits"),
    ("seeds", int, "N", "run fewer seeds"),
    ("trials", int, "N", "run fewer trials of a search"),
    ("repeats", int, "N", "repeat measurements less often"),
    ("scale", float, "SHARE", "below 1: shrink everything, to try a benchmark"),
    ("threads", int, "N", "threads of benchmarks; 0 means all cores [2, or as the benchmark says]"),
    ("device", str, "NAME", "device of benchmarks [cpu]"),
    ("part", list, "NAME", "only this part of the page; repeatable [all]"),
    ("search", list, "NAME", "tuning: only this search; repeatable [all]"),
    ("presets", Path, "FILE", "tuning: write the settings to this file"),
    ("jobs", int, "N", "cases at a time; 0 stays in this process [by cores]"),
    ("cells", Path, "FOLDER", "finished cases [the cache]"),
    ("output", Path, "FOLDER", "pages [docs/results]"),
    ("render", bool, "", "write pages from stored rows, run nothing"),
    ("rows", bool, "", "store rows and write no pages, which need matplotlib and Jinja"),
    ("again", bool, "", "run finished cases again"),
    ("quiet", bool, "", "no progress bars"),
)


def main(names: Mapping[str, str], about: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code, which is 2 for an error that the user can fix."""
    about, _, example = about.partition("For example:")
    parser = ArgumentParser(
        prog=f"python -m {next(iter(names.values())).partition('.')[0]}",
        description=about,
        epilog=f"For example: {example.strip()}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    for name, kind, stands, text in ARGUMENTS:
        how: dict[str, Any] = {"action": "store_true"}
        if kind is not bool:
            how = {"metavar": stands, **({"action": "append"} if kind is list else {"type": kind})}
        parser.add_argument(f"--{name}", help=text, **how)
    parser.set_defaults(output=RESULTS)
    try:
        return _run(names, parser.parse_args(arguments))
    except KeyboardInterrupt as interrupt:
        print(f"stopped: {interrupt} cases are kept; run the command again", file=sys.stderr)
        return 130
    except ERRORS as problem:
        print(f"error: {message_of(problem)}", file=sys.stderr)
        return 2


def _run(names: Mapping[str, str], given: Namespace) -> int:
    found = {name: load(names, name) for name in dict.fromkeys(given.names or names)}
    if given.list:
        for name, each in found.items():
            print(f"{name:16}{each.title}{': ' if each.paper else ''}{each.paper}")
        return 0
    if given.all == bool(given.names):
        raise ValueError(f"give --list, --all, or names of experiments: {', '.join(names)}")
    if given.jobs is not None and given.jobs < 0:
        raise ValueError(f"--jobs {given.jobs}: give 1 or more, or 0 to stay in this process")
    asked = {name: getattr(given, name) for name in (*COUNTS, *OTHERS)}
    asked |= {name: tuple(getattr(given, flag) or ()) for name, flag in FLAGS.items()}
    asked = {name: value for name, value in asked.items() if value not in (None, ())}
    failed = 0
    for name, each in found.items():
        for option in sorted(asked.keys() - each.accepts):
            print(f"{name} has no {option}: --{FLAGS.get(option, option)} is ignored")
        own = {option: asked[option] for option in asked.keys() & each.accepts}
        try:
            failed |= not run(each, each.options(**own), given)
        except ERRORS as problem:
            if len(found) == 1:
                raise
            failed = 1
            print(f"{name} cannot be run: {message_of(problem)}")
    return failed
