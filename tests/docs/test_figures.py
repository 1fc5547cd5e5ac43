"""The documents have the figures of docs/results, and docs/figures.py notices where they differ."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "figures.py"
GENERATOR = runpy.run_path(str(SCRIPT))
PAGE = """## Small

|  | seconds | gain |
| --- | --- | --- |
| ours | 1.25 | **+2.0** [+0.5, +3.5] |

## Large

|  | d | seconds | gain |
| --- | --- | --- | --- |
| ours | 32 | 1,250 | -1.0 [-3.0, +0.5] |
"""


def test_the_documents_have_the_figures_of_the_results():
    """Where this fails, run `python docs/figures.py`."""
    command = [sys.executable, SCRIPT, "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def rewritten(monkeypatch, tmp_path, text, phrase, *sources):
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setitem(GENERATOR["lookup"].__globals__, "RESULTS", tmp_path)
    names = {"large": "page#Large > ours | 32"}
    new, _, wrong = GENERATOR["rewrite"](
        text, {phrase: sources}, lambda source: GENERATOR["lookup"](source, names)
    )
    return wrong or new


@pytest.mark.parametrize(
    ("text", "phrase", "sources", "new"),
    [
        ("in 9\ns.", "in # s", ["page > ours > seconds"], "in 1.25\ns."),
        ("in .9 s", "in .#1 s", ["page > ours > seconds"], "in 1.3 s"),
        ("in 9 s", "in # s", ["large > seconds"], "in 1,250 s"),
        ("+9 % [8, 9]", "+# % [#]", ["page > ours > gain"], "+2.0 % [0.5, 3.5]"),
        ("| 9 [1, 9] |", "| *+# [#]* |", ["page > ours > gain"], "| **+2.0 [0.5, 3.5]** |"),
        ("| **9 [1, 9]** |", "| *+# [#]* |", ["large > gain"], "| -1.0 [-3.0, 0.5] |"),
        ("loses 9 %", "loses -# %", ["large > gain"], "loses 1.0 %"),
        ("9, 9", "#, +#", ["large > seconds; gain"], "1,250, -1.0"),
        ("of 9", "of #", ["page > ours > gain > ,"], "of 3.5"),
    ],
)
def test_figures_are_written(text, phrase, sources, new, monkeypatch, tmp_path):
    assert rewritten(monkeypatch, tmp_path, text, phrase, *sources) == new


@pytest.mark.parametrize(
    ("text", "phrase", "source", "problem"),
    [
        ("gains 9 %", "gains # %", "large > gain", "the sign of -1.0"),
        ("loses 9 %", "loses -# %", "page > ours > gain", "the sign of 2.0"),
        ("took 9 s", "in # s", "large > seconds", "stands 0 times"),
        ("in 9 s, in 8 s", "in # s", "large > seconds", "stands 2 times"),
        ("in 9 s", "in # s", "large > minutes", "no row"),
        ("in 9 s", "in # s", "page#Middle > ours > seconds", "no 'page#Middle"),
        ("9 and 9", "# and #", "large > seconds", "has 1 sources"),
    ],
)
def test_what_is_wrong_is_told(text, phrase, source, problem, monkeypatch, tmp_path):
    [told] = rewritten(monkeypatch, tmp_path, text, phrase, source)
    assert problem in told


def test_a_decimal_beside_a_link_to_results_needs_a_source():
    text = "Fast: 1.5 s ([cpu](results/cpu.md)), with `0.3`.\n\n| 2.5 |\n\nElsewhere 3.5."
    assert GENERATOR["without_source"](text, SCRIPT.parent) == ["1.5", "2.5"]
