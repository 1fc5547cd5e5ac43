"""How docstrings become pages of the API: examples as code, defaults without their rules."""

import re
import runpy
from pathlib import Path
from typing import Any

import griffe

DEFAULTS = runpy.run_path(str(Path(__file__).parents[1] / "src/safecf/defaults.py"))
DOCTEST = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.DOTALL | re.MULTILINE)


def fenced(docstring: str) -> str:
    """Put examples into fences, unless they are in a section of their own."""
    text, *section = docstring.split("\nExamples\n")
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    return "\nExamples\n".join([text, *section])


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Changes docstrings and values before they are shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Show examples as code."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the default of an option, `option(256, RULE)`, as 256."""
        value = attr.value
        if isinstance(value, griffe.ExprCall) and value.canonical_path.endswith("option"):
            default = str(value.arguments[0])
            attr.value = repr(DEFAULTS[default]) if default in DEFAULTS else default
