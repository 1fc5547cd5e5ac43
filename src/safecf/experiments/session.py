"""`Session`: from an experiment to its page."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from safecf.experiments import data, page
from safecf.experiments.base import Cell, Experiment, Options, Result, Results, canonical
from safecf.experiments.runner import Interrupted, run_cells
from safecf.experiments.store import Store

NUMBER = re.compile(r"[-+.\d]*\d%?")
SHOWN = 5  # failures that are told in full

Say = Callable[[str], object]


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
        if self.output.exists() and not self.output.is_dir():
            raise NotADirectoryError(f"{self.output} is a file; give a folder with --output")
        self.show_progress, self.render_only = show_progress, render_only

    def run(self, experiment: Experiment, options: Options, say: Say) -> int:
        """Run what is missing, write the page, and return how many cells have failed."""
        page.check_plots()
        wanted, done = experiment.cells(options), Results(())
        names = {cell.settings["data"] for cell in wanted if "data" in cell.settings}
        located = {name: data.find(name, self.path) for name in names | {options.data}}
        files = {name: file for name, file in located.items() if file is not None}
        locations = {name: str(file) for name, file in files.items()}
        store = Store(self.cells, {name: data.checksum(file) for name, file in files.items()})
        while wanted:
            found, failures = self._run_all(experiment, wanted, store, locations, say)
            if failures:
                say(f"{experiment.name}: no page was written, since {failures} cells failed")
                return failures
            done += found
            wanted = self._more(experiment, done, options)
        made = page.origin(experiment.command(options))
        shown = experiment.render(done, options)
        note = self._note(experiment, options)
        name, title = experiment.page_name(options), experiment.title
        if name != experiment.name:
            title = f"{title}: {options.data}"
        made = "\n\n".join([made, f"Of the paper: {experiment.paper}.", *note])
        shown = replace(shown, blocks=[*shown.blocks, *_warnings(done)])
        for written in page.write(self.output, name, title, made, shown):
            say(f"written: {written}")
        return 0

    @staticmethod
    def _more(experiment: Experiment, done: Results, options: Options) -> list[Cell]:
        """Return the new cells that follow from the results so far."""
        known = {canonical(each.settings) for each in done}
        cells = [] if experiment.then is None else experiment.then(done, options)
        return [cell for cell in cells if canonical(cell.settings) not in known]

    def _run_all(
        self,
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
                raise FileNotFoundError(
                    f"{experiment.name}: {len(cells) - len(found)} of {len(cells)} cells are not "
                    f"in {store.folder} for this code; leave out --render-only to run them"
                )
            return found, 0
        try:
            run = run_cells(
                cells,
                store,
                title=experiment.name,
                jobs=self.jobs,
                alone=experiment.alone,
                locations=locations,
                show_progress=self.show_progress,
            )
        except Interrupted as interrupt:
            say(f"stopped: {interrupt} cells are kept; the same command goes on from there")
            raise
        for cell, reason in run.failures[:SHOWN]:
            say(f"failed: {reason}, in the cell {cell}")
        if len(run.failures) > SHOWN:
            say(f"and {len(run.failures) - SHOWN} more")
        return [run.results[number] for number in sorted(run.results)], len(run.failures)

    @staticmethod
    def _note(experiment: Experiment, options: Options) -> list[str]:
        """Say what makes the numbers less than those of the whole experiment."""
        smaller = experiment.smaller(options)
        notes = [f"{few} of {all_} {name}" for name, (few, all_) in smaller.items()]
        said = [f"**A smaller run: {', '.join(notes)}.**"] if notes else []
        if options.data == "tiny":
            said.append("**Tiny synthetic data, to try the command: the numbers mean nothing.**")
        return said


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
        f"- {count} of {len(done)} cells, such as: {examples[kind]}"
        for kind, count in counts.most_common(SHOWN)
    ]
    return ["Warnings of the models:", "\n".join(lines)]
