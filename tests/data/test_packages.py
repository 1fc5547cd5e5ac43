"""The packages of `safecf.data`: each docstring names the modules in reading order."""

import ast
from pathlib import Path

import pytest

import safecf.data

PACKAGES = ("reading", "matrices", "splits", "datasets")
FOLDER = Path(safecf.data.__file__).parent


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_names_its_modules(package):
    docstring = ast.get_docstring(ast.parse((FOLDER / package / "__init__.py").read_text()))
    order = docstring.split("Modules in reading order:")[1]
    for path in (FOLDER / package).glob("[a-z]*.py"):
        assert f"`{path.stem}`" in order
