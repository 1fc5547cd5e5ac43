"""What pages show: commands as they are typed, with what they print."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.harness import Found, Row, Size
from reproduction.experiment import RESULTS, Tables
from safecf.datasets import DATASETS

# Files in the folder SAFECF_DATA that stand for what is typed; the first that is there.
FILES = {
    "ml-1m": ("ml-1m.zip", "ml-1m.parquet"),
    "book-crossing.parquet": ("book-crossing.parquet",),
}
TUTORIAL = RESULTS.parent / "tutorial.md"
WIDTH = 90  # of the terminal
FIRST = 0.15  # share of users; the interval of fewer is too wide to show


def measure(size: Size, commands: list[str], keep_curve: bool = False) -> Found:
    """Run commands; `keep_curve`: keep what the report of the first one draws."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if "clicks.parquet" in commands[0]:
            write_clicks(folder)
        for command in commands:
            yield "commands", {"command": command, "printed": run(command, folder)}
        yield "curve", curve(folder / "report.html") if keep_curve else []


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
    words = [sys.executable, "-m", program, *arguments]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    printed = subprocess.check_output(words, cwd=folder, env=environment, text=True)
    return "\n".join(line.rstrip() for line in printed.splitlines())


def curve(page: Path) -> list[Row]:
    """Return the lift of SAFER2 over iALS by share of users, from the data in a report."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
    assert found, page
    content = json.loads(found[1])
    drawn: dict[str, Any] = content["panels"][content["metric"]]["curve"]
    [lift] = [series for series in drawn["series"] if series["name"] == "SAFER2"]
    points = zip(drawn["x"], lift["low"], lift["y"], lift["high"], strict=True)
    names = ("share", "low", "lift", "high")
    return [dict(zip(names, point, strict=True)) for point in points if point[0] >= FIRST]


def draw(tables: Tables) -> Any:
    """Draw the lift of SAFER2 over iALS, from the worst-off 15 % to everybody."""
    from reproduction.figures import COLOURS, panels  # noqa: PLC0415 - needs matplotlib

    points = tables.get("ml-1m.curve")
    if not points:
        return None
    figure, (axes,) = panels(1, height=2.4)
    figure.set_size_inches(6, 2.6)
    x = [100 * point["share"] for point in points]
    low, lift, high = ([point[name] for point in points] for name in ("low", "lift", "high"))
    axes.axhline(0, color=COLOURS[0], linewidth=0.8)
    axes.annotate("iALS", (100, 0), (-4, -9), textcoords="offset points", ha="right")
    axes.fill_between(x, low, high, color=COLOURS[1], alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(x, lift, color=COLOURS[1], label="SAFER2")
    axes.set(
        xlabel="the worst-off share of the users, up to everybody (%)",
        ylabel="gain in their recall@20 (%)",
        xlim=(100 * FIRST, 100),
        ylim=(-2.5, None),
    )
    axes.legend(loc="upper right")
    return figure
