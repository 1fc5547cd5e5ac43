"""Pages of results, and the code and machine that they were made with."""

import csv
import functools
import io
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import safecf
from safecf.atomic import replace_file

# What a result was made with: "machine", "commit", and the versions of PACKAGES.
Origin = Mapping[str, str]

PACKAGES = ("safecf", "numpy", "torch")
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PLOTS = "figures need matplotlib; install it with: pip install 'safecf[plots]'"


@dataclass(frozen=True)
class Page:
    """The content of an experiment's page.

    Parameters
    ----------
    blocks
        Paragraphs and tables, in Markdown.
    rows
        All numbers in long form, for the CSV file: one dictionary per row, with the same keys.
    figure
        A function that draws the figure and returns it; None if there is none.
    caption
        The caption of the figure.
    """

    blocks: Sequence[str]
    rows: Sequence[Mapping[str, Any]] = ()
    figure: Callable[[], Any] | None = None
    caption: str = ""


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
    """Return the short hash of the commit, with "-dirty" if files other than pages changed.

    Where the files are a copy without their history, SAFECF_COMMIT names it.
    """
    if given := os.environ.get("SAFECF_COMMIT"):
        return given

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", ".", ":!docs/*.md", ":!docs/results")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


@functools.cache
def current_origin() -> Origin:
    """Return this machine, and the commit and versions when this process started."""
    found = {"safecf": safecf.__version__}
    for name in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return {**found, "commit": commit(), "machine": machine()}


def origin_text(command: str, cells: Iterable[Origin] = ()) -> str:
    """Write the command of a page, and the origins of its cells, or the current one if none."""
    found = Counter(_origin_text(each) for each in cells)
    found = found or Counter([_origin_text(current_origin())])
    if len(found) == 1:
        return f"`{command}` with {next(iter(found))}."
    lines = [f"- {counted(count, 'cell')} with {text}" for text, count in found.most_common()]
    return "\n".join([f"`{command}`. Its cells were made\n", *lines])


def _origin_text(origin: Origin) -> str:
    if not origin:
        return "the same code, at a commit that they do not tell"
    versions = [f"{name} {origin[name]}" for name in PACKAGES if name in origin]
    return f"{', '.join(versions)} at commit `{origin['commit']}`, on {origin['machine']}"


def counted(count: int, noun: str) -> str:
    """Write a number and a noun in singular or plural.

    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table; floats have four decimals.

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


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; all have the keys of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(folder: Path, name: str, title: str, origin: str, page: Page) -> list[Path]:
    """Write NAME.md, and NAME.csv and NAME.svg if there are rows and a figure.

    `origin` is the text of `origin_text`. Return the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks, files = [f"# {title}", origin, *page.blocks], dict[str, str]()
    drawn = [] if page.figure is None else _draw(page.figure, folder / name)
    if drawn:
        blocks.append(f"![{page.caption or title}]({name}.svg)")
    if page.rows:
        files[f"{name}.csv"] = csv_text(page.rows)
        blocks.append(f"All numbers: [{name}.csv]({name}.csv).")
    files[f"{name}.md"] = "\n\n".join(blocks) + "\n"
    for file, content in files.items():
        replace_file(folder / file, content.encode())
    return [*(folder / file for file in files), *drawn]


def check_plots() -> None:
    """Raise if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError(PLOTS)


def _draw(figure: Callable[[], Any], path: Path) -> list[Path]:
    check_plots()
    from reproduction import figures  # noqa: PLC0415

    with figures.style():
        return [figures.save(figure(), path)]
