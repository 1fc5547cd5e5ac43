"""Pages of results: what was measured, with which command, at which commit, on which machine."""

import csv
import functools
import io
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import safecf
from safecf.atomic import replace_file

# Where and with what something was made: "machine", "commit", and the versions of PACKAGES.
Made = Mapping[str, str]

PACKAGES = ("safecf", "numpy", "torch")
ROOT = Path(safecf.__file__).resolve().parents[2]
PLOTS = "figures need matplotlib; install it with: pip install 'safecf[plots]'"


@dataclass(frozen=True)
class Page:
    """What an experiment shows.

    Parameters
    ----------
    blocks
        Paragraphs and tables, in Markdown.
    rows
        All numbers in long form, for the CSV file: one dictionary per row, with the same keys.
    figure
        Draws the figure, and returns it; None if there is none.
    caption
        What the figure shows.
    files
        Further files to write beside the page: their names, and texts.
    """

    blocks: Sequence[str]
    rows: Sequence[Mapping[str, Any]] = ()
    figure: Callable[[], Any] | None = None
    caption: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def results_folder() -> Path:
    """Return docs/results of the checkout that runs, or the current folder."""
    return ROOT / "docs" / "results" if in_checkout() else Path()


def in_checkout(root: Path = ROOT) -> bool:
    """Whether the library runs from its sources, or those in another folder are meant."""
    return (root / "pyproject.toml").is_file() and (root / "docs").is_dir()


def machine() -> str:
    """Describe the CPU, its cores and the memory."""
    model = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        lines = cpu_info.read_text().splitlines()
        names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
        model = next(names, model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernels = safecf._core.isas()[0]
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, kernels {kernels}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit(root: Path = ROOT) -> str:
    """Name the commit, with a mark when anything but the results has changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip()

    if not in_checkout(root):
        return "unknown"
    changed = git("status", "--porcelain", "--", ".", ":!docs/results")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


@functools.cache
def here(root: Path = ROOT) -> Made:
    """Return the machine, and the commit and the versions with which this process began."""
    found = {"safecf": safecf.__version__}
    for name in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return {**found, "commit": commit(root), "machine": machine()}


def origin(command: str, root: Path = ROOT, cells: Iterable[Made] = ()) -> str:
    """Say with which command, versions and commit, on which machine a page was made.

    `cells` say it of themselves; without any it was made here.
    """
    found = Counter(_told(each) for each in cells) or Counter([_told(here(root))])
    if len(found) == 1:
        return f"`{command}` with {next(iter(found))}."
    lines = [f"- {counted(count, 'cell')} with {told}" for told, count in found.most_common()]
    return "\n".join([f"`{command}`. Its cells were made\n", *lines])


def _told(made: Made) -> str:
    if not made:
        return "the same code, at a commit that they do not tell"
    versions = [f"{name} {made[name]}" for name in PACKAGES if name in made]
    return f"{', '.join(versions)} at commit `{made['commit']}`, on {made['machine']}"


def counted(count: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table; numbers have four digits after the point.

    >>> print(table(["model", "R@20"], [["iALS", 0.34501]]))
    | model | R@20 |
    | --- | --- |
    | iALS | 0.3450 |
    """
    titles = list(header)
    lines = [titles, ["---"] * len(titles), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: Any) -> str:
    return f"{cell:.4f}" if isinstance(cell, float) else "" if cell is None else str(cell)


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with a line of names; all have the keys of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(folder: Path, name: str, title: str, made: str, page: Page) -> list[Path]:
    """Write NAME.md, and NAME.csv, NAME.svg and NAME.png where there are numbers and a figure.

    `made` says how it was made, see `origin`. Return the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks, files = [f"# {title}", made, *page.blocks], dict(page.files)
    drawn = [] if page.figure is None else _draw(page.figure, folder / name)
    if drawn:
        blocks.append(f"![{page.caption or title}]({name}.svg)")
    if page.rows:
        files[f"{name}.csv"] = comma_separated(page.rows)
        blocks.append(f"All numbers: [{name}.csv]({name}.csv).")
    files[f"{name}.md"] = "\n\n".join(blocks) + "\n"
    for file, content in files.items():
        replace_file(folder / file, content.encode())
    return [*(folder / file for file in files), *drawn]


def check_plots() -> None:
    """Refuse to start without what draws the figures."""
    if find_spec("matplotlib") is None:
        raise ImportError(PLOTS)


def _draw(figure: Callable[[], Any], place: Path) -> list[Path]:
    check_plots()
    from reproduction import figures  # noqa: PLC0415

    with figures.style():
        return figures.save(figure(), place)
