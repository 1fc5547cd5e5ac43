"""`Session`: run experiments and write their pages."""

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
SHOWN = 5  # reasons of failures, and kinds of warnings, that are listed
BUG = "this is a bug in reproduction/; please report it with the traceback"

Echo = Callable[[str], object]


class PlanError(ValueError):
    """An experiment cannot be run; the message says what is missing."""


class Session:
    """Runs experiments with the same folders and number of jobs.

    Parameters
    ----------
    path
        Archive, folder or file of the data set.
    output, cells
        Folders of the pages and of finished cells; None means docs/results, and the cache.
    jobs
        How many cells run at a time, 0 meaning in this process; None means by cores and memory.
    show_progress
        Whether to show progress bars.
    render_only
        Write pages from finished cells, and run nothing.
    cells_only
        Run cells and write no pages, which need matplotlib; `tuning` still writes presets.
    """

    def __init__(
        self,
        path: Path | None = None,
        output: Path | None = None,
        cells: Path | None = None,
        jobs: int | None = None,
        *,
        show_progress: bool = True,
        render_only: bool = False,
        cells_only: bool = False,
    ) -> None:
        if jobs is not None and jobs < 0:
            raise ValueError(f"--jobs {jobs}: give 1 or more, or 0 to run cells in this process")
        self.path, self.cells, self.jobs = path, cells, jobs
        self.output = page.RESULTS if output is None else output
        self.show_progress = show_progress
        self.render_only, self.cells_only = render_only, cells_only
        _check_folder(self.output, "--output")
        if not render_only:
            _check_folder(Store(cells).folder, "--cells")
        if not cells_only:
            page.check_plots()

    def run_all(self, plans: Sequence[tuple[Experiment, Options]], echo: Echo) -> int:
        """Run experiments one after another; return how many of them did not get a page.

        All are planned first, and those that cannot be run are reported at once; a single one
        raises `PlanError`. After a `tuning` that writes presets, planning may fail for presets that
        it has yet to find, so that the experiment is planned again when its turn comes.
        """
        possible, tuned = [], False
        for experiment, options in plans:
            try:
                self.plan(experiment, options)
            except PlanError as problem:
                if len(plans) == 1:
                    raise
                if not tuned:
                    echo(f"{experiment.name} cannot be run: {problem}")
                    continue
            tuned |= experiment.tunes and options.presets is not None
            possible.append((experiment, options))
        done = 0
        for number, (experiment, options) in enumerate(possible, 1):
            position = f" ({number} of {len(possible)})" if len(possible) > 1 else ""
            done += self._try(experiment, options, echo, position)
        return len(plans) - done

    def _try(self, experiment: Experiment, options: Options, echo: Echo, position: str) -> bool:
        """Run an experiment, and return whether its page was written."""
        try:
            return self.run(experiment, options, echo, position) == 0
        except (PlanError, OSError, MemoryError) as problem:
            echo(f"{experiment.name}: no page was written: {problem}")
        except Exception as problem:
            traceback.print_exc()
            echo(
                f"{experiment.name}: no page was written, because of {type(problem).__name__}: "
                f"{problem}; {BUG} above. Finished cells are kept"
            )
        return False

    def plan(self, experiment: Experiment, options: Options) -> tuple[list[Cell], dict[str, Path]]:
        """Return the first round and the files of the data, and fix the code version."""
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
        except Exception as problem:
            raise RuntimeError(
                f"{experiment.name}: its cells could not be planned; {BUG}"
            ) from problem
        for cell in wanted:
            code_version(cell.run)
        return wanted, {name: file for name, file in located.items() if file is not None}

    def run(self, experiment: Experiment, options: Options, echo: Echo, position: str = "") -> int:
        """Run the cells that are missing, write the page, and return how many cells failed.

        `position` is shown in the progress bar, such as " (1 of 3)".
        """
        wanted, files = self.plan(experiment, options)
        done, number = Results(()), 0
        locations = {name: str(file) for name, file in files.items()}
        store = Store(self.cells, {name: data.checksum(file) for name, file in files.items()})
        while wanted:
            number += 1
            title = experiment.name + (f", round {number}" if experiment.then else "") + position
            found, failures = self._run_round(title, experiment, wanted, store, locations, echo)
            if failures:
                failed = f"{counted(failures, 'cell')} failed"
                echo(f"{experiment.name}: no page was written, since {failed}")
                return failures
            done += found
            wanted = self._next_round(experiment, done, options)
        if self.cells_only:
            if experiment.tunes:
                experiment.render(done, options)  # writes the presets
            echo(f"{experiment.name}: {counted(len(done), 'cell')} in {store.folder}")
            return 0
        origin = page.origin_text(experiment.command(options), [each.origin for each in done])
        shown = experiment.render(done, options)
        notes = self._notes(experiment, options)
        title = experiment.title
        if options.data != experiment.default:
            title = f"{title}: {options.data}"
        files_used = [f"Data: {name}, sha256 `{sum_[:16]}…`." for name, sum_ in store.data.items()]
        head = "\n\n".join([origin, f"Of the paper: {experiment.paper}.", *files_used, *notes])
        shown = replace(shown, blocks=[*shown.blocks, *_warnings(done)])
        for written in page.write(self.output, experiment.page_name(options), title, head, shown):
            echo(f"written: {written}")
        return 0

    @staticmethod
    def _next_round(experiment: Experiment, done: Results, options: Options) -> list[Cell]:
        """Return the new cells that `then` asks for, given the results so far."""
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
        echo: Echo,
    ) -> tuple[list[Result], int]:
        """Return the results of all cells, and how many failed."""
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
                suffix=" of this round" if experiment.then else "",
                jobs=self.jobs,
                alone=experiment.alone,
                locations=locations,
                show_progress=self.show_progress,
            )
        except Interrupted as interrupt:
            echo(
                f"stopped: {interrupt} cells are finished and kept; run the command again to go on"
            )
            raise
        for line in _failures(run):
            echo(line)
        return [run.results[number] for number in sorted(run.results)], len(run.failures)

    @staticmethod
    def _notes(experiment: Experiment, options: Options) -> list[str]:
        """Return paragraphs on how this run differs from the whole experiment."""
        reduced = experiment.reduced(options)
        counts = [f"{few} of {all_} {name}" for name, (few, all_) in reduced.items()]
        notes = [f"**A smaller run: {', '.join(counts)}.**"] if counts else []
        if options.searches:
            notes.append(f"**Only the searches for {'; '.join(options.searches)}.**")
        if experiment.other_presets(options):
            notes.append(f"**Settings of one's own: `{options.presets}`.**")
        if options.data == TINY:
            notes.append("**Tiny synthetic data, to try the command: the numbers mean nothing.**")
        return notes


def _failures(run: Run) -> list[str]:
    """Return a line for each reason, with its number of cells and one of them."""
    counts = Counter(reason for _, reason in run.failures)
    examples = {reason: cell for cell, reason in reversed(run.failures)}
    lines = [
        f"failed: {reason}, in {'the cell' if count == 1 else f'{count} cells, such as'} "
        f"{examples[reason]}"
        for reason, count in counts.most_common(SHOWN)
    ]
    if len(counts) > SHOWN:
        lines.append(f"failed for {counted(len(counts) - SHOWN, 'other reason')}")
    if run.skipped:
        lines.append(f"skipped, since all failed before: {counted(run.skipped, 'cell')}")
    return lines


def _check_torch(cells: Sequence[Cell]) -> None:
    """Raise if a cell needs PyTorch and it is missing."""
    if find_spec("torch") is None and any(
        cell.settings.get("model") == MultVAE.__name__ for cell in cells
    ):
        raise ImportError("Mult-VAE needs PyTorch; install it with: pip install 'safecf[torch]'")


def _check_folder(folder: Path, option: str) -> None:
    """Raise if the folder, or the nearest parent that exists, cannot be written to."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is a file; give a folder with {option}")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as problem:
        reason = problem.strerror or problem
        raise OSError(
            f"{folder}: cannot be written to ({reason}); give another folder with {option}"
        ) from None


def _check_presets(file: Path) -> None:
    """Raise if presets cannot be written to the file, which need not exist yet."""
    if file.exists():
        presets.read(file)
    elif not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}, for --presets {file.name}")
    _check_folder(file.parent, "--presets")


def _warnings(done: Results) -> list[str]:
    """Return the warnings of the models and how often each occurred; numbers in them may differ."""
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
