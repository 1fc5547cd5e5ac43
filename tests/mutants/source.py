"""Draw mutants of the library's Python with a fixed seed, and write a copy that holds them all.

The operators are those of mutmut. Every mutant stands in the copy behind a switch, `on(number)`,
so that one import serves all of them and the run knows exactly which tests reach which mutant.

    python -m tests.mutants.source FOLDER [--count 3200] [--only models --only data]
"""

import json
import random
import shutil
import venv
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import libcst as cst
import typer
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).resolve().parents[2] / "src" / "safecf"
SEED = 20261119
COUNT = 3200
LEAST = 60  # mutants of a small package
PACKAGES = (
    "als", "measures", "data", "models", "backends/numpy", "backends/cpu", "evaluation", "tuning",
    "serving", "batch.py", "atomic.py",
)  # fmt: skip
# Annotations and defaults of arguments are no code of the body; the wording of messages is free.
NO_CODE = cst.Annotation | cst.Decorator | cst.Parameters | cst.ImportFrom | cst.Import | cst.Match
MESSAGES = {"warn", "warning"}
UNCHANGED_CALLS = {"len", "isinstance"}  # as in mutmut
SWITCH = '''"""Which mutant is on, and in a run for coverage which ones were reached."""

import atexit
import os

active = int(os.environ.get("SAFECF_MUTANT", "-1"))
reached = None
folder = os.environ.get("SAFECF_REACHED")
if folder:
    reached = set()

    def _write():
        with open(f"{folder}/{os.getpid()}", "a") as file:
            file.write(" ".join(map(str, reached)) + " ")

    atexit.register(_write)


def on(number):
    if reached is not None:
        reached.add(number)
    return number == active
'''


class Finder(cst.CSTVisitor):
    """Collect (place, node, mutated node, line): the place is what gets the switch."""

    METADATA_DEPENDENCIES = (ParentNodeProvider, PositionProvider)

    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, cst.CSTNode, int]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Offer the node to every operator, unless it is no code of a function's body."""
        if isinstance(node, NO_CODE):
            return False
        if isinstance(node, cst.Call) and getattr(node.func, "value", "") in UNCHANGED_CALLS:
            return False
        if isinstance(node, cst.SimpleString) and self._is_text(node):
            return False
        place = self._place(node)
        if place is not None:
            line = self.get_metadata(PositionProvider, node).start.line
            for kind, operator in mutation_operators:
                if isinstance(node, kind):
                    self.found += [(place, node, mutated, line) for mutated in operator(node)]
        return True

    def _above(self, node: cst.CSTNode):
        while (node := self.get_metadata(ParentNodeProvider, node, None)) is not None:
            yield node

    def _is_text(self, node: cst.CSTNode) -> bool:
        """Whether a string is a docstring or the wording of an error or a warning."""
        for above in self._above(node):
            if isinstance(above, cst.Raise | cst.Expr | cst.ConcatenatedString):
                return True
            if isinstance(above, cst.Call) and _name(above.func) in MESSAGES:
                return True
            if isinstance(above, cst.SimpleStatementLine):
                return False
        return False

    def _place(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the statement, or the head of a compound one, that the mutant replaces."""
        place, below = None, node
        if isinstance(node, cst.BaseStatement | cst.BaseSuite | cst.Module):
            return None
        for above in self._above(node):
            if place is None and isinstance(above, cst.SimpleStatementLine):
                place = above
            if place is None and isinstance(above, cst.BaseCompoundStatement | cst.WithItem):
                heads = [getattr(above, name, None) for name in ("test", "iter", "item")]
                place = below if below in heads else None
                if place is None:
                    return None
            if isinstance(above, cst.FunctionDef):
                return place
            below = above
        return None


def _name(function: cst.BaseExpression) -> str:
    return (
        function.attr.value
        if isinstance(function, cst.Attribute)
        else getattr(function, "value", "")
    )


class Switches(cst.CSTTransformer):
    """Replace places by switches between their mutants and what they were."""

    def __init__(self, mutants: dict[cst.CSTNode, list[tuple[int, cst.CSTNode]]]) -> None:
        self.mutants = mutants

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode):
        """Write `if on(1): ... elif on(2): ... else: ...`, or the same as an expression."""
        result = super().on_leave(original_node, updated_node)
        for number, mutated in reversed(self.mutants.get(original_node, [])):
            test = cst.parse_expression(f"_mutants.on({number})")
            if isinstance(original_node, cst.SimpleStatementLine):
                block = cst.IndentedBlock([mutated])
                other = (
                    cst.Else(cst.IndentedBlock([result]))
                    if isinstance(result, cst.SimpleStatementLine)
                    else result
                )
                result = cst.If(test, block, other)
            else:
                result = cst.IfExp(
                    test, _closed(mutated), _closed(result), [cst.LeftParen()], [cst.RightParen()]
                )
        return result


def _closed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(
        lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()]
    )


def package_of(path: Path) -> str | None:
    """Return the package that a file of the library counts for."""
    inside = path.relative_to(ROOT).as_posix()
    return next(
        (each for each in PACKAGES if inside == each or inside.startswith(each + "/")), None
    )


def make_python(folder: Path, beside: Path) -> None:
    """Make an interpreter that finds the copy before what is installed."""
    venv.create(folder / "venv", clear=True)
    (packages,) = beside.glob("lib/python*/site-packages")
    (own,) = (folder / "venv").glob("lib/python*/site-packages")
    (own / "mutants.pth").write_text(f"{folder}\n{packages}\n")
    for core in [*ROOT.glob("_core*.so"), *packages.glob("safecf/_core*.so")][:1]:
        shutil.copy(core, folder / "safecf")
    command = (beside / "bin" / "safecf").read_text().split("\n", 1)[1]
    script = folder / "venv" / "bin" / "safecf"
    script.write_text(f"#!{folder}/venv/bin/python\n{command}")
    script.chmod(0o755)


def main(
    folder: Path,
    count: int = COUNT,
    only: Annotated[list[str] | None, typer.Option(help="packages; all by default")] = None,
    beside: Annotated[Path, typer.Option(help="environment of the tests")] = Path(".venv"),
) -> None:
    """Write FOLDER/safecf with its switches, FOLDER/mutants.jsonl, their list, and FOLDER/venv.

    The Python of FOLDER/venv imports this copy, and everything else from the environment `beside`.
    """
    shutil.rmtree(folder / "safecf", ignore_errors=True)
    for stale in (*folder.glob("cover-*.jsonl"), *folder.glob("killed-*.jsonl")):
        stale.unlink()
    shutil.copytree(ROOT, folder / "safecf", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (folder / "safecf" / "_mutants.py").write_text(SWITCH)
    modules, found = {}, defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        package = package_of(path)
        if package is None or (only and package not in only):
            continue
        wrapper, finder = MetadataWrapper(cst.parse_module(path.read_text())), Finder()
        wrapper.visit(finder)
        modules[path] = wrapper.module
        found[package] += [(path, *each) for each in finder.found]
    total = sum(map(len, found.values()))
    chosen, lines = defaultdict(lambda: defaultdict(list)), []
    for package, every in found.items():
        wanted = min(len(every), max(LEAST, round(count * len(every) / total)))
        draw = random.Random(f"{SEED} {package}")
        for path, place, node, mutated, line in draw.sample(every, wanted):
            was, becomes = (cst.Module([]).code_for_node(each).strip() for each in (node, mutated))
            changed = place.deep_replace(node, mutated) if place is not node else mutated
            chosen[path][place].append((len(lines), changed))
            file = path.relative_to(ROOT).as_posix()
            lines.append([len(lines), package, file, line, was, becomes])
    for path, places in chosen.items():
        text = modules[path].visit(Switches(places)).code
        head = "from safecf import _mutants\n"
        at = text.index("\n\n", text.index('"""', 3)) + 1 if text.startswith('"""') else 0
        text = text[:at] + head + text[at:]
        compile(text, str(path), "exec")
        (folder / "safecf" / path.relative_to(ROOT)).write_text(text)
    with (folder / "mutants.jsonl").open("w") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)
    make_python(folder.resolve(), beside.resolve())
    counts = {package: sum(each[1] == package for each in lines) for package in found}
    print(f"{len(lines)} of {total} possible mutants: {counts}")


if __name__ == "__main__":
    typer.run(main)
