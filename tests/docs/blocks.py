"""The code blocks of a page, how each kind of them is run, and what is compared of the outputs."""

import io
import json
import math
import re
import shlex
import shutil
import sys
import tomllib
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from safecf import cli
from safecf.cli.split_options import SplitOptions
from safecf.data.datasets.synthetic import SHAPES
from safecf.datasets import DATASETS
from tests.serving.service import Client, running

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"python", "bash", "console", "text", "json", "yaml", "toml"}
# Everything is run as it is written, but for these, which would take long, or need a GPU.
SHORTER = {
    "synthetic(2000, 500, 60_000, tastes=12)": "synthetic(700, 300, 15_000, tastes=8)",
    "synthetic(2500, 600, 75_000, tastes=12)": "synthetic(700, 300, 15_000, tastes=8)",
    "--repeats 10": "--repeats 2",
    "--repeats 5": "--repeats 2",
    "repeats=10": "repeats=2",
    "repeats=5": "repeats=2",
    "heldout=500": "heldout=100",
    "heldout=300)": "heldout=100)",
    "heldout=300,": "heldout=100,",
    "--trials 20": "--trials 2",
    "trials=20": "trials=2",
}
if shutil.which("nvidia-smi") is None:
    SHORTER['device="cuda"'] = 'backend="torch", device="cpu"'
SMALL_DEMO = {"users": 700, "items": 300, "interactions": 20_000, "tastes": 8}
OTHERS = {"venv-pack", "pyspark[connect]"}  # packages that pages install
INCLUDED = "--8<--"  # a file, which has a test of its own
# Commands with one of these take long, or need data of others; `python -m benchmarks readme`
# records what they print.
RECORDED = {"--repeats", "ml-1m", "book-crossing.parquet"}
NUMBER = r"(?:(?<![\w.-])[+-])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
FENCE = re.compile(r"^( *)```(?:\{\.)?(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


class Block(NamedTuple):
    """A fenced block: its language, its code, the line it begins at, and what it follows."""

    language: str
    code: str
    line: int
    after_python: bool = False  # at once: it shows what that prints


def shorter(code):
    """Return code that takes less time."""
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


def blocks(page, shorten=shorter):
    """Return the fenced blocks of a page, by default with code that takes less time."""
    text = shorten(page.read_text())
    return [
        Block(
            found[2],
            re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE),
            text.count("\n", 0, found.start(3)) + 1,
            re.search(r"```python\n(?:(?!```).)*```\n\n\Z", text[: found.start()], re.DOTALL)
            is not None,
        )
        for found in FENCE.finditer(text)
    ]


def commands(block):
    r"""Return the commands of a block of shell, each with the output that is shown, or None.

    >>> commands(Block("console", "$ safecf data \\\n    summary x\nusers 3\n", 1))
    [('safecf data      summary x', 'users 3\n')]
    """
    code = block.code.replace("\\\n", " ")
    if block.language == "console":
        found = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
        return [(command, shown) for command, _, shown in (each.partition("\n") for each in found)]
    lines = [line for line in code.splitlines() if line.strip()]
    return [(line, None) for line in lines if not line.lstrip().startswith("#")]


def is_recorded(command):
    """Whether what a command shows was recorded, as it takes long or needs data of others."""
    return not RECORDED.isdisjoint(shlex.split(command, comments=True))


def words(output):
    """Return the words and numbers of an output without times, memory that is free, and frames.

    A sign belongs to a number, a hyphen to neither word nor range.

    >>> words("│ page 3 │ +0.25 % │ [-0.9, 1e-3] │ in 0.78 s")
    ['page', 3.0, 0.25, '%', -0.9, 0.001, 'in', 'TIME']
    >>> words("worst-off 2-3")
    ['worst', 'off', 2.0, 3.0]
    """
    output = re.sub(r"[\d.,]+ m?s\b|(?<=seconds=)[\d.]+", "TIME", output)
    output = re.sub(r"free here .*", "", output)
    found = re.findall(rf"{NUMBER}|[^\W\d]+|%", output)
    return [float(each.replace(",", "")) if each[-1].isdigit() else each for each in found]


def parts(shown, split):
    """Return the parts of what is shown between lines `...`, each split into what is compared."""
    return [split(part) for part in re.split(r"^\.\.\.(?:\n|\Z)", shown, flags=re.MULTILINE)]


def is_whole(parts, whole, alike):
    """Whether a list consists of these parts, with anything between two of them.

    >>> is_whole([[1], [3, 4], []], [1, 2, 3, 4, 5], alike=list.__eq__)
    True
    """
    first, *later = parts
    if not alike(first, whole[: len(first)]):
        return False
    rest = whole[len(first) :]
    for number, part in enumerate(later, 1):
        end = len(rest) - len(part)
        places = range(end if number == len(later) else 0, end + 1)
        found = [place for place in places if alike(part, rest[place : place + len(part)])]
        if end < 0 or not found:
            return False
        rest = rest[found[0] + len(part) :]
    return not rest


def are_close(shown, printed):
    """Whether words are the same, and numbers to 2 %."""
    return len(shown) == len(printed) and all(
        math.isclose(a, b, rel_tol=0.02) if float is type(a) is type(b) else a == b
        for a, b in zip(shown, printed, strict=True)
    )


def is_alike(shown, printed):
    r"""Whether the whole output is the one shown, with numbers to 2 %.

    A line `...` stands for what is left out there.

    >>> is_alike("...\nusers 3,000", "items 600\nusers 3,001")
    True
    >>> is_alike("users 3,000", "items 600\nusers 3,001")
    False
    """
    return is_whole(parts(shown, words), words(printed), are_close)


class Runner:
    """Runs blocks one after the other, as a reader would paste them into one session."""

    def __init__(self, page, monkeypatch, stack):
        self.page, self.monkeypatch, self.stack = page, monkeypatch, stack
        self.names = {"__name__": "__main__"}
        self.port, self.printed = None, ""
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr("safecf.serving.server.run", self.serve)
        # A third of the time of reports, which have thousands of p-values.
        monkeypatch.setattr("safecf.evaluation.difference._wilcoxon", lambda changes: 0.5)
        monkeypatch.setitem(SHAPES, "demo", replace(SHAPES["demo"], **SMALL_DEMO))
        monkeypatch.setattr("safecf.cli.demo.SPLIT", SplitOptions(heldout=100))
        monkeypatch.setitem(DATASETS, "ml-1m", replace(DATASETS["ml-1m"], heldout=100))

    def run(self, block):
        if block.language == "python" and not block.code.startswith(INCLUDED):
            code = "\n" * (block.line - 1) + block.code  # errors name the line of the page
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(code, str(self.page), "exec"), self.names)
            self.printed = output.getvalue()
        if block.language == "text" and block.after_python:
            assert is_alike(block.code, self.printed), f"printed: {self.printed}"
        if block.language in ("bash", "console"):
            for command, shown in commands(block):
                program, *arguments = shlex.split(command, comments=True)
                with redirect_stdout(io.StringIO()) as output:
                    PROGRAMS[program](self, arguments)
                if shown is not None and not is_recorded(command):
                    assert is_alike(shown, output.getvalue()), f"printed: {output.getvalue()}"

    def serve(self, settings, log=None):
        """Serve on any free port until the end of the test; `curl` then asks there."""
        given = vars(replace(settings, port=0, watch=0))
        self.port = self.stack.enter_context(running(**given)).port

    def safecf(self, arguments):
        self.monkeypatch.setattr(sys, "argv", ["safecf", *arguments])
        with pytest.raises(SystemExit, match=r"^\d*") as end:
            cli.main()
        assert not end.value.code, f"safecf {shlex.join(arguments)}"

    def curl(self, arguments):
        *options, url = arguments
        path = url.removeprefix("http://127.0.0.1:8000")
        assert path != url, url
        client = Client(self.port)
        if "-d" in options:
            reply = client.post(path, json.loads(options[options.index("-d") + 1]))
        else:
            reply = client.get(path)
        client.close()
        assert reply.status == 200, reply.text
        print(reply.text)

    def pip(self, arguments):
        """Nothing is installed; but the extras exist."""
        install, what = arguments
        if what in OTHERS:
            return
        found = re.fullmatch(r"(safecf|\.)(?:\[([\w,]+)\])?", what)
        assert (install, bool(found)) == ("install", True), arguments
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert {*(found[2] or "").split(",")} - {""} <= {*project["optional-dependencies"]}

    def elsewhere(self, arguments):
        """Nothing is run: it takes a cluster."""

    def make(self, arguments):
        """Nothing is made; but the targets exist."""
        targets = [each for each in arguments if "=" not in each and not each.startswith("-")]
        rules = (ROOT / "Makefile").read_text()
        for target in targets:
            assert re.search(rf"^[\w -]*\b{target}\b[\w -]*:", rules, re.MULTILINE), target

    def python(self, arguments):
        """Nothing is run; but the module, or the file, exists."""
        if arguments[0] == "-m":
            assert find_spec(arguments[1]), arguments
        else:
            assert (ROOT / arguments[0]).is_file(), arguments


PROGRAMS = {
    "safecf": Runner.safecf,
    "curl": Runner.curl,
    "pip": Runner.pip,
    "make": Runner.make,
    "python": Runner.python,
    "venv-pack": Runner.elsewhere,
    "spark-submit": Runner.elsewhere,
}


def run_page(page, monkeypatch):
    """Run all blocks of a page; return the names that its Python has defined."""
    with ExitStack() as stack:
        runner = Runner(page, monkeypatch, stack)
        for block in blocks(page):
            runner.run(block)
    return runner.names
