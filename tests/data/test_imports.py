"""The packages of `safecf.data`: imports go one way, and each docstring names the modules."""

import ast
from pathlib import Path

import pytest

import safecf.data

PACKAGES = ("reading", "matrices", "splits", "datasets")
FOLDER = Path(safecf.data.__file__).parent


def imported_packages(path):
    """Return the packages of `safecf.data` that a module imports."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "module")]
    parts = [(node.module or "").split(".") for node in imports]
    return {part[2] for part in parts if part[:2] == ["safecf", "data"] and len(part) > 2}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_before_it(package):
    allowed = {"limits", *PACKAGES[: PACKAGES.index(package) + 1]}
    for path in (FOLDER / package).glob("*.py"):
        assert imported_packages(path) <= allowed, path


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_names_its_modules(package):
    docstring = ast.get_docstring(ast.parse((FOLDER / package / "__init__.py").read_text()))
    order = docstring.split("Modules in reading order:")[1]
    for path in (FOLDER / package).glob("[a-z]*.py"):
        assert f"`{path.stem}`" in order
