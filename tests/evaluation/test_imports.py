"""Imports go one way: measures are a leaf, and evaluation knows no model."""

import subprocess
import sys

import pytest

LOADED = """
import sys
import {package}
print(*sorted(name for name in sys.modules if name.startswith("safecf.")))
"""


def loaded(package):
    """Return the modules of the library that importing a package loads."""
    code = LOADED.format(package=package)
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return run.stdout.split()


@pytest.mark.parametrize(
    ("package", "known"),
    [
        (
            "safecf.measures",
            {
                "measures",
                "data",
                "errors",
                "checks",
                "texts",
                "defaults",
                "free_memory",
                "caching",
                "_core",
            },
        ),
        (
            "safecf.evaluation",
            {
                "evaluation",
                "measures",
                "als",
                "data",
                "errors",
                "checks",
                "texts",
                "defaults",
                "free_memory",
                "caching",
                "_core",
            },
        ),
    ],
)
def test_a_package_loads_only_what_is_below_it(package, known):
    found = {name.split(".")[1] for name in loaded(package)}
    assert package.split(".")[1] in found
    assert found <= known
