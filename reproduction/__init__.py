"""Experiments of the paper, and what benchmarks share with them: run, store, write pages.

`experiment` declares what is run, `run` runs it, `store` keeps it, `page` shows it, `command` is
the command line. The text of a page is a template in `pages/`; experiments.toml lists them.
"""

import tomllib
from pathlib import Path
from typing import Any


def settings(name: str) -> dict[str, Any]:
    """Return what NAME.toml in this folder has."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf8"))


ABOUT = settings("experiments")
NAMES = {name: f"{__name__}.experiments.{each['at']}" for name, each in ABOUT.items()}
