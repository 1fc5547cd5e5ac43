"""The version of the code, as far as it can change the result of a cell."""

import ast
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import safecf

LIBRARY = Path(safecf.__file__).parent
# Parts of the library that cannot change a score; all other folders and files count.
NOT_COUNTED = (
    *("__init__.py", "atomic.py", "errors.py", "progress.py"),
    *("cli", "reporting", "serving", "spark", "tuning"),
)
# Modules of this package that all cells use.
SHARED = ("data.py", "tasks/quality.py")
OWN = (Path(__file__).parent.name, "safecf")


@functools.cache
def code_version(run: Callable[..., Any]) -> str:
    """Return safecf's version and a digest of all code that the result of a cell may depend on.

    This is the library, its native part, `SHARED`, and the module of the cell's function. Of each
    Python module counts what `meaning` returns, not the path: moving a file or changing comments
    leaves the digest as it is.

    The answer is cached, since a process goes on with the code that it has loaded.
    """
    module = import_module(run.__module__)
    found = hashlib.sha256(_library().encode())
    if module.__file__ is not None:
        found.update(meaning(Path(module.__file__).read_text(encoding="utf8")))
    return f"{safecf.__version__}-{found.hexdigest()[:16]}"


@functools.cache
def _library() -> str:
    native = Path(import_module("safecf._core").__file__ or "")
    return digest([*counted_files(), *(Path(__file__).parent / name for name in SHARED)], native)


def counted_files() -> Iterator[Path]:
    """Return the library's modules that can change a number."""
    for file in LIBRARY.rglob("*.py"):
        if file.relative_to(LIBRARY).parts[0] not in NOT_COUNTED:
            yield file


def digest(files: Iterable[Path], native: Path) -> str:
    """Return the sha256 of the modules' meanings, in sorted order, and of the native part."""
    meanings = sorted(meaning(file.read_text(encoding="utf8")) for file in files)
    return hashlib.sha256(native.read_bytes() + b"\n".join(filter(None, meanings))).hexdigest()


def meaning(source: str) -> bytes:
    r"""Return what counts of a module: all but comments, docstrings, layout and own paths.

    Of imports from our own packages only the names count, not the modules they come from; a module
    with nothing but such imports means nothing.

    >>> meaning('x = 1  # one') == meaning('"A docstring."\nx  =  1')
    True
    >>> meaning('from safecf.a import f\nf()') == meaning('from safecf.b.c import f\nf()')
    True
    """
    stripped = _Stripped()
    tree = stripped.visit(ast.parse(source))
    if not tree.body:
        return b""
    return f"{sorted(stripped.imported)} {ast.dump(tree)}".encode()


class _Stripped(ast.NodeTransformer):
    """Remove docstrings, and imports from our own packages, whose names are kept aside."""

    def __init__(self) -> None:
        self.imported: set[str] = set()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
        return super().generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        if node.level == 0 and (node.module or "").split(".")[0] not in OWN:
            return node
        self.imported |= {f"{each.name} as {each.asname}" for each in node.names}
        return None

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        kept = [each for each in node.names if each.name.split(".")[0] not in OWN]
        return ast.Import(kept) if kept else None
