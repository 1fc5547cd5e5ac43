"""Numbers of the paper, and of its authors' code, to compare ours with: published.toml."""

import tomllib
from pathlib import Path
from typing import Any

NUMBERS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))
Column = tuple[str, float]  # a metric, and a tail level: the share of worst-off users, 1 for all


def columns(data: str) -> list[Column]:
    """Return the four columns of Table 1; those of ML-1M for data that it does not have."""
    cutoffs = NUMBERS["cutoffs"].get(data, NUMBERS["cutoffs"]["ml-1m"])
    return [(f"recall@{k}", level) for level in (1.0, 0.3) for k in cutoffs]


def reported(data: str, source: str = "paper") -> dict[str, dict[Column, float]]:
    """Return the numbers of the "paper", or of the authors' "code", by model and column."""
    found = NUMBERS[source].get(data, {})
    return {name: dict(zip(columns(data), each, strict=True)) for name, each in found.items()}
