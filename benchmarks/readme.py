"""What pages show: commands as they are typed, with what they print."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import safecf
from benchmarks import report
from benchmarks.parts import Part, Parts
from benchmarks.records import Options
from safecf.datasets import DATASETS

MOVIES = "safecf compare ml-1m"
CLICKS = "safecf compare clicks.parquet --user visitor --item page -m ials -m safer2"
# By part, what is said above each command.
COMMANDS = {
    "ml-1m": {
        "Both models with their defaults, on ten random splits:": (
            f"{MOVIES} -m ials -m safer2 --repeats 10 --report report.html"
        ),
        "With the options that `safecf tune` found for iALS, see [tuning](../tuning.md):": (
            f"{MOVIES} -m ials:unobserved_weight=0.154,regularization=0.00886,iterations=4 "
            "-m safer2 --repeats 10"
        ),
    },
    "clicks": {
        "On the file that the first code of the [tutorial](../tutorial.md) writes:": (
            f"{CLICKS} --repeats 5 --report report.html"
        ),
        "On more splits:": f"{CLICKS} --repeats 10",
    },
    "books": {
        "Users and books of Book-Crossing, those with at least 20 books, as a Parquet file:": (
            "safecf compare book-crossing.parquet -m ials -m safer2"
        ),
    },
}
# Files in the folder SAFECF_DATA that stand for what is typed; the first that is there.
FILES = {
    "ml-1m": ("ml-1m.zip", "ml-1m.parquet"),
    "book-crossing.parquet": ("book-crossing.parquet",),
}
TUTORIAL = report.RESULTS.parent / "tutorial.md"
WIDTH = 90  # of the terminal
FIRST = 0.15  # share of users; the interval of fewer is too wide to show
CAPTION = (
    "The gain of SAFER2 over iALS in recall@20, both with their defaults, by share of worst-off "
    "users: the first of these commands"
)


def data(typed: str) -> list[str]:
    """Return the arguments that stand for a typed one: nothing is downloaded."""
    if typed not in FILES:
        return [typed]
    folder = Path(os.environ["SAFECF_DATA"]).resolve()
    file = str(next(file for file in map(folder.joinpath, FILES[typed]) if file.exists()))
    return [typed, "--path", file] if typed in DATASETS else [file]


def write_clicks(folder: Path) -> None:
    """Write the tutorial's file, by the first block of its code."""
    code = re.search(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    assert code, TUTORIAL
    subprocess.run([sys.executable, "-c", code[1]], cwd=folder, check=True)


def run(command: str, folder: Path) -> str:
    """Run a command in a folder; return what it prints."""
    program, *arguments = chain.from_iterable(map(data, shlex.split(command)))
    assert program == "safecf", command
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def measure(name: str, options: Options) -> dict[str, Any]:
    """Run the commands of a part; of MovieLens-1M, keep the curve of the report as well."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if name == "clicks":
            write_clicks(folder)
        printed = {command: run(command, folder) for command in COMMANDS[name].values()}
        curves = curve(folder / "report.html") if name == "ml-1m" else None
    return {"printed": printed, "curve": curves}


def curve(page: Path) -> dict[str, Any]:
    """Return the curve of lifts by share of users, from the data in a report."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
    assert data, page
    content = json.loads(data[1])
    found: dict[str, Any] = content["panels"][content["metric"]]["curve"]
    return found


def draw(found: dict[str, Any]) -> Any:
    """Draw the lift of SAFER2 over iALS, from the worst-off 15 % to everybody."""
    from reproduction.figures import COLOURS, panels  # noqa: PLC0415

    figure, (axes,) = panels(1, height=2.4)
    figure.set_size_inches(6, 2.6)
    [lift] = [series for series in found["series"] if series["name"] == "SAFER2"]
    first = next(place for place, share in enumerate(found["x"]) if share >= FIRST)
    x = [100 * share for share in found["x"][first:]]
    low, y, high = (lift[name][first:] for name in ("low", "y", "high"))
    axes.axhline(0, color=COLOURS[0], linewidth=0.8)
    axes.annotate("iALS", (100, 0), (-4, -9), textcoords="offset points", ha="right")
    axes.fill_between(x, low, high, color=COLOURS[1], alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(x, y, color=COLOURS[1], label="SAFER2")
    axes.set(
        xlabel="the worst-off share of the users, up to everybody (%)",
        ylabel="gain in their recall@20 (%)",
        xlim=(100 * FIRST, 100),
        ylim=(-2.5, None),
    )
    axes.legend(loc="upper right")
    return figure


def section(name: str, results: dict[str, Any], options: Options) -> list[str]:
    """Return the commands of a part with what they print, and the figure if there is one."""
    blocks = []
    for about, command in COMMANDS[name].items():
        blocks += [about, f"```console\n$ {command}\n{results['printed'][command]}\n```"]
    if results["curve"]:
        from reproduction import figures  # noqa: PLC0415 - needs matplotlib

        with figures.style():
            figures.save(draw(results["curve"]), options.pages / "readme")
        blocks.append(f"![{CAPTION}](readme.svg)")
    return blocks


TITLES = {"ml-1m": "MovieLens-1M", "clicks": "The tutorial's clicks", "books": "Book-Crossing"}
README = Parts(
    "readme",
    "What the README shows",
    (
        "Also the outputs on other pages of commands that take long, or whose data is not part of "
        "the project.",
    ),
    {
        name: Part(title, partial(measure, name), partial(section, name))
        for name, title in TITLES.items()
    },
    with_what="With",
)


def main(part: list[str] | None = None) -> None:
    """Run the commands of all parts or the named ones, and write the page.

    --part may be repeated: ml-1m, clicks, books, or page to run nothing. The folder SAFECF_DATA
    has ml-1m.zip or ml-1m.parquet, and book-crossing.parquet.
    """
    options = Options(scale=1.0, threads=0, repeats=1)
    README.run(part, options, lambda: {"safecf": safecf.__version__})
