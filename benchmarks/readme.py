"""What the README shows: its commands on MovieLens-1M as they are typed, with what they print."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report

COMPARE = (
    "safecf compare ml-1m --path ml-1m.zip -m ials -m safer2 --repeats 10 --report report.html"
)
# With what `safecf tune` found for iALS, see `docs/tuning.md`.
TUNED = (
    "safecf compare ml-1m --path ml-1m.zip "
    "-m ials:unobserved_weight=0.154,regularization=0.00886,iterations=4 -m safer2 --repeats 10"
)
FILES = ("ml-1m.zip", "ml-1m.parquet")
WIDTH = 90  # of the terminal
FIRST = 0.15  # share of users; the interval of fewer is too wide to show


def run(command: str, data: Path, folder: Path) -> str:
    """Run a command in a folder, with the data in place of ml-1m.zip; return what it prints."""
    program, *arguments = shlex.split(command.replace("ml-1m.zip", shlex.quote(str(data))))
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
        xlabel="share of users, from the worst-off to everybody (%)",
        ylabel="recall@20 over iALS (%)",
        xlim=(100 * FIRST, 100),
        ylim=(-2.5, None),
    )
    axes.legend(loc="upper right")
    return figure


def main() -> None:
    """Run the README's commands on ml-1m.zip, or ml-1m.parquet, in the folder SAFECF_DATA."""
    found = Path(os.environ["SAFECF_DATA"])
    data = next(file for file in map(found.joinpath, FILES) if file.exists()).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = [
            f"```console\n$ {each}\n{run(each, data, folder)}\n```" for each in (COMPARE, TUNED)
        ]
        lifts = curve(folder / "report.html")
    page = report.write(
        "readme",
        "What the README shows",
        "Both models with their defaults, on ten random splits:",
        shown[0],
        "With the options that `safecf tune` found for iALS:",
        shown[1],
        figure=lambda: draw(lifts),
        caption="The gain of SAFER2 over iALS in recall@20, both with their defaults, by share of "
        "worst-off users: the first of these commands",
    )
    print(page.read_text())
