"""The version of the code, as far as it can change a number."""

import ast
import functools
import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import safecf

SOURCES = Path(safecf.__file__).parent
# What is trained, ranked and scored; pages, the command line and progress bars are not.
FOLDERS = ("als", "backends", "data", "evaluation", "measures", "models", "vae")
FILES = ("data.py", "quality.py")


@functools.cache
def code_version(run: Callable[..., Any]) -> str:
    """Return safecf's version and a digest of all that the result of a cell may depend on.

    That is the library, its native part, and the module of the cell's function. Comments and
    docstrings do not count. A process that has asked once gets the same answer ever after, as it
    goes on with the code that it has loaded.
    """
    module = import_module(run.__module__)
    found = hashlib.sha256(_library().encode())
    if module.__file__ is not None:
        found.update(meaning(Path(module.__file__).read_text(encoding="utf8")))
    return f"{safecf.__version__}-{found.hexdigest()[:16]}"


@functools.cache
def _library() -> str:
    found = hashlib.sha256()
    files = [file for folder in FOLDERS for file in sorted((SOURCES / folder).rglob("*.py"))]
    for file in [*files, *(Path(__file__).parent / name for name in FILES)]:
        found.update(file.name.encode())
        found.update(meaning(file.read_text(encoding="utf8")))
    native = Path(import_module("safecf._core").__file__ or "")
    found.update(native.read_bytes())
    return found.hexdigest()


def meaning(source: str) -> bytes:
    r"""Return what is left of a source without comments, docstrings and layout.

    >>> meaning('x = 1  # one') == meaning('"A docstring."\nx  =  1')
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree).encode()
