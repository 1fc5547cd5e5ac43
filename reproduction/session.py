"""`Session`: from experiments to their pages."""

import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from reproduction import data, page, presets
from reproduction.base import TINY, Cell, Experiment, Options, Result, Results, canonical
from reproduction.page import counted
from reproduction.runner import Interrupted, Run, run_cells
from reproduction.store import Store
from reproduction.version import code_version
from safecf.models import MultVAE

NUMBER = re.compile(r"[-+.\d]*\d%?")
SHOWN = 5  # failures that are told in full

Say = Callable[[str], object]


class PlanError(ValueError):
    """An experiment cannot be run; says what is missing."""


class Session:
    """Where data, cells and pages are, and how many cells run at a time."""

    def __init__(
        self,
        path: Path | None = None,
        output: Path | None = None,
        cells: Path | None = None,
        jobs: int | None = None,
        *,
        show_progress: bool = True,
        render_only: bool = False,
    ) -> None:
        if jobs is not None and jobs < 0:
            raise ValueError(f"--jobs {jobs}: give 1 or more, or 0 to run cells in this process")
        self.path, self.cells, self.jobs = path, cells, jobs
        self.output = page.results_folder() if output is None else output
        self.show_progress, self.render_only = show_progress, render_only
        _check_folder(self.output, "--output")
        if not render_only:
            _check_folder(Store(cells).folder, "--cells")
        page.check_plots()

    def run_all(self, plans: Sequence[tuple[Experiment, Options]], say: Say) -> int:
        """Run one experiment after another, and return how many of them have no new page.

        What cannot be run is told before anything is; a single one that cannot raises
        `PlanError`. What needs settings that `tuning` may find before it is tried in its turn.
        """
        possible, tuned = [], False
        for experiment, options in plans:
            try:
                self.plan(experiment, options)
            except PlanError as problem:
                if len(plans) == 1:
                    raise
                if not tuned:
                    say(f"{experiment.name} cannot be run: {problem}")
                    continue
            tuned |= experiment.tunes and options.presets is not None
            possible.append((experiment, options))
        done = 0
        for number, (experiment, options) in enumerate(possible, 1):
            place = f" ({number} of {len(possible)})" if len(possible) > 1 else ""
            done += self._has_page(experiment, options, say, place)
        return len(plans) - done

    def _has_page(self, experiment: Experiment, options: Options, say: Say, place: str) -> bool:
        """Run an experiment, and say why, if no page comes of it."""
        try:
            return self.run(experiment, options, say, place) == 0
        except (PlanError, OSError, MemoryError) as problem:
            say(f"{experiment.name}: no page was written: {problem}")
        except Exception:
            traceback.print_exc()
            say(f"{experiment.name}: no page was written; the mistake above is one of safecf")
        return False

    def plan(self, experiment: Experiment, options: Options) -> tuple[list[Cell], dict[str, Path]]:
        """Return the first cells, and the files of the data; from here on the code is fixed."""
        try:
            if experiment.tunes and options.presets is not None:
                _check_presets(options.presets)
            wanted = experiment.cells(options)
            if not self.render_only:
                _check_torch(wanted)
            names = {cell.settings["data"] for cell in wanted if "data" in cell.settings}
            located = {name: data.find(name, self.path) for name in names}
        except (ValueError, OSError, ImportError, MemoryError) as problem:
            raise PlanError(str(problem)) from problem
        for cell in wanted:
            code_version(cell.run)
        return wanted, {name: file for name, file in located.items() if file is not None}

    def run(self, experiment: Experiment, options: Options, say: Say, place: str = "") -> int:
        """Run what is missing, write the page, and return how many cells have failed.

        `place` is which one of how many it is, for the progress bar.
        """
        wanted, files = self.plan(experiment, options)
        done, number = Results(()), 0
        locations = {name: str(file) for name, file in files.items()}
        store = Store(self.cells, {name: data.checksum(file) for name, file in files.items()})
        while wanted:
            number += 1
            title = experiment.name + (f", round {number}" if experiment.then else "") + place
            found, failures = self._run_round(title, experiment, wanted, store, locations, say)
            if failures:
                failed = f"{counted(failures, 'cell')} failed"
                say(f"{experiment.name}: no page was written, since {failed}")
                return failures
            done += found
            wanted = self._more(experiment, done, options)
        made = page.origin(experiment.command(options), cells=[each.made for each in done])
        shown = experiment.render(done, options)
        note = self._note(experiment, options)
        title = experiment.title
        if options.data != experiment.default:
            title = f"{title}: {options.data}"
        read = [f"Data: {name}, sha256 `{total[:16]}…`." for name, total in store.data.items()]
        made = "\n\n".join([made, f"Of the paper: {experiment.paper}.", *read, *note])
        shown = replace(shown, blocks=[*shown.blocks, *_warnings(done)])
        for written in page.write(self.output, experiment.page_name(options), title, made, shown):
            say(f"written: {written}")
        return 0

    @staticmethod
    def _more(experiment: Experiment, done: Results, options: Options) -> list[Cell]:
        """Return the new cells that follow from the results so far."""
        known = {canonical(each.settings) for each in done}
        cells = [] if experiment.then is None else experiment.then(done, options)
        return [cell for cell in cells if canonical(cell.settings) not in known]

    def _run_round(
        self,
        title: str,
        experiment: Experiment,
        cells: list[Cell],
        store: Store,
        locations: dict[str, str],
        say: Say,
    ) -> tuple[list[Result], int]:
        """Return the results of all cells, or how many failed."""
        if self.render_only:
            known = [store.get(cell) for cell in cells]
            found = [each for each in known if each is not None]
            if len(found) < len(cells):
                these = "code and machine" if experiment.alone else "code"
                raise FileNotFoundError(
                    f"{len(cells) - len(found)} of {counted(len(cells), 'cell')} are not in "
                    f"{store.folder} for this {these}; leave out --render-only to run them"
                )
            return found, 0
        try:
            run = run_cells(
                cells,
                store,
                title=title,
                what=" of this round" if experiment.then else "",
                jobs=self.jobs,
                alone=experiment.alone,
                locations=locations,
                show_progress=self.show_progress,
            )
        except Interrupted as interrupt:
            say(f"stopped: {interrupt} cells are kept; the same command goes on from there")
            raise
        for line in _failures(run):
            say(line)
        return [run.results[number] for number in sorted(run.results)], len(run.failures)

    @staticmethod
    def _note(experiment: Experiment, options: Options) -> list[str]:
        """Say what makes the numbers less than those of the whole experiment."""
        smaller = experiment.smaller(options)
        notes = [f"{few} of {all_} {name}" for name, (few, all_) in smaller.items()]
        said = [f"**A smaller run: {', '.join(notes)}.**"] if notes else []
        if experiment.other_presets(options):
            said.append(f"**Settings of one's own: `{options.presets}`.**")
        if options.data == TINY:
            said.append("**Tiny synthetic data, to try the command: the numbers mean nothing.**")
        return said


def _failures(run: Run) -> list[str]:
    """Say what went wrong: every reason, with one cell that it happened to."""
    counts = Counter(reason for _, reason in run.failures)
    examples = {reason: cell for cell, reason in reversed(run.failures)}
    lines = [
        f"failed: {reason}, in {'the cell' if count == 1 else f'{count} cells, such as'} "
        f"{examples[reason]}"
        for reason, count in counts.most_common(SHOWN)
    ]
    if len(counts) > SHOWN:
        lines.append(f"and for {counted(len(counts) - SHOWN, 'other reason')}")
    if run.untried:
        lines.append(f"not tried after that: {counted(run.untried, 'cell')}")
    return lines


def _check_torch(cells: Sequence[Cell]) -> None:
    """Refuse to start what would fail at its Mult-VAE."""
    if find_spec("torch") is None and any(
        cell.settings.get("model") == MultVAE.__name__ for cell in cells
    ):
        raise ImportError("Mult-VAE needs PyTorch; install it with: pip install 'safecf[torch]'")


def _check_folder(folder: Path, option: str) -> None:
    """Refuse a folder in which nothing can be written, before there is anything to write."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file; give a folder with {option}")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        reason = problem.strerror or problem
        raise OSError(
            f"{folder}: nothing can be written there ({reason}); give another folder with {option}"
        ) from None


def _check_presets(file: Path) -> None:
    """Refuse a file into which presets cannot be put; it need not be there yet."""
    if file.exists():
        presets.read(file)
    elif not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}, for --presets {file.name}")
    _check_folder(file.parent, "--presets")


def _warnings(done: Results) -> list[str]:
    """Say what the models warned of, and how often."""
    examples: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for each in done:
        for text in each.record.get("warnings", ()):
            kind = NUMBER.sub("", text)
            examples.setdefault(kind, text)
            counts[kind] += 1
    if not counts:
        return []
    lines = [
        f"- {count} of {counted(len(done), 'cell')}, such as: {examples[kind]}"
        for kind, count in counts.most_common(SHOWN)
    ]
    return ["Warnings of the models:", "\n".join(lines)]
