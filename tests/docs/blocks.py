"""Runs the blocks of a page as a reader would paste them, and compares what they print.

Programs that take a cluster, or install something, are not run; but what they name exists.
"""

import codeop
import io
import math
import re
import shlex
import shutil
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from safecf import cli
from tests.serving.service import running

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^( *)```(?:\{\.)?(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
HERE = build_opener(ProxyHandler({}))
SHOWN = {"json", "toml", "yaml"}  # languages of blocks that are not run
# Everything is run as it is written, but for these, which would take long, or need a GPU.
SHORTER = {
    r"synthetic\(\d+, \d+, \d+_000, tastes=12\)": "synthetic(700, 300, 15_000, tastes=8)",
    r"(--repeats |--trials |repeats=|trials=)\d+": r"\g<1>2",
    r"heldout=[35]00\b": "heldout=100",
    r"^(safecf (?:data split|compare|tune) ml-1m) ": r"\1 --heldout 100 ",
}
if shutil.which("nvidia-smi") is None:
    SHORTER['device="cuda"'] = 'backend="torch", device="cpu"'
NUMBER = r"(?:(?<![\w.-])[+-])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"


def shorter(code):
    """Return code that takes less time."""
    for long, short in SHORTER.items():
        code = re.sub(long, short, code, flags=re.MULTILINE)
    return code


def commands(code):
    """Return the commands of a block for a shell, each with the output shown, or None."""
    code = re.sub(r"\\\n\s*", "", code)
    if not code.startswith("$ "):
        return [(line, None) for line in code.splitlines() if shlex.split(line, comments=True)]
    found = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (each.partition("\n") for each in found)]


# Outputs of what takes long or needs data of others: `python -m benchmarks readme` records them.
RECORDED = {
    command: shown
    for block in BLOCK.findall((DOCS / "results" / "readme.md").read_text())
    for command, shown in commands(block[2])
}


def words(output):
    """Return the words and numbers of an output without times, and memory that is free."""
    output = re.sub(r"[\d.,]+ m?s\b|(?<=seconds=)[\d.]+", "TIME", output)
    output = re.sub(r"free here .*", "", output)
    found = re.findall(rf"{NUMBER}|[^\W\d]+|%", output)
    return [float(each.replace(",", "")) if each[-1].isdigit() else each for each in found]


def is_alike(shown, printed, tolerance):
    """Whether all of an output is shown, but for what a line `...` stands for."""
    parts = [words(part) for part in re.split(r"^\.\.\.(?:\n|\Z)", shown, flags=re.MULTILINE)]
    rest = words(printed)
    for part in parts:
        places = range(len(rest) - len(part) + 1)
        places = places[:1] if part is parts[0] else places
        places = places[-1:] if part is parts[-1] else places
        found = [at for at in places if are_close(part, rest[at : at + len(part)], tolerance)]
        if not found:
            return False
        rest = rest[found[0] + len(part) :]
    return not rest


def are_close(some, others, tolerance):
    return all(
        math.isclose(a, b, rel_tol=tolerance) if float is type(a) is type(b) else a == b
        for a, b in zip(some, others, strict=True)
    )


class Reader:
    """Runs blocks one after the other, as if they were pasted into one session."""

    def __init__(self, page, stack):
        self.page, self.stack = page, stack
        self.names, self.port, self.printed = {"__name__": "__main__"}, None, None

    def run(self, language, code, line):
        printed, self.printed = self.printed, None
        if language == "python" and not code.startswith("--8<--"):  # files have tests of their own
            self.python(shorter(code), line)
        elif language == "text":
            assert is_alike(code, printed, 0.02), f"printed: {printed}"
        elif language in ("bash", "console"):
            for command, shown in commands(code):
                with redirect_stdout(io.StringIO()) as output:
                    self.shell(*shlex.split(shorter(command), comments=True))
                printed, tolerance = output.getvalue(), 0.02
                if command in RECORDED:
                    printed, tolerance = RECORDED[command], 0
                if shown is not None:
                    assert is_alike(shown, printed, tolerance), f"printed: {printed}"
        else:
            assert language in SHOWN | {"python"}

    def python(self, code, line):
        statement = ""  # a prompt, unlike a file, wants an empty line after an indented block
        for each in [*code.splitlines(), ""]:
            statement += f"{each}\n"
            if codeop.compile_command(statement, symbol="single"):
                statement = ""
        assert not statement.strip()
        with redirect_stdout(io.StringIO()) as output:
            exec(compile("\n" * line + code, str(self.page), "exec"), self.names)
        self.printed = output.getvalue()

    def shell(self, program, *arguments):
        match program, *arguments:
            case "safecf", *_:
                sys.argv = ["safecf", *arguments]
                with pytest.raises(SystemExit) as end:
                    cli.main()
                assert not end.value.code, arguments
            case "curl", *options, url:
                sent = options[options.index("-d") + 1].encode() if "-d" in options else None
                url = re.sub(r"^http://127\.0\.0\.1:8000", f"http://127.0.0.1:{self.port}", url)
                with HERE.open(Request(url, sent, {"Content-Type": "application/json"})) as reply:
                    print(reply.read().decode())
            case "pip", "install", what:
                project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
                extras = {*re.sub(r".*\[|\]", "", what).split(",")}
                known = {*project["optional-dependencies"], "safecf", ".", "venv-pack", "connect"}
                assert extras <= known
            case "make", target, *_:
                rules = (ROOT / "Makefile").read_text()
                assert re.search(rf"^[\w -]*\b{target}\b[\w -]*:", rules, re.MULTILINE)
            case "python", "-m", module, *_:
                assert find_spec(module)
            case "python", file, *_:
                assert (ROOT / file).is_file()
            case _:
                assert program in ("venv-pack", "spark-submit")

    def serve(self, settings, log=None):
        """Serve on any free port until the end of the page; `curl` then asks there."""
        given = vars(replace(settings, port=0, watch=0))
        self.port = self.stack.enter_context(running(**given)).port
