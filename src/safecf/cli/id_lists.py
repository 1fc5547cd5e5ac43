"""Lists of ids: typed one by one, or read from files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.cli.command_options import DataOptions
from safecf.data.matrices.ids import IdArray, Index
from safecf.data.reading.columns import read_columns
from safecf.data.reading.layout import Column, Layout
from safecf.data.reading.paths import PARQUET, open_file, strip_compression
from safecf.data.reading.sources import file_source
from safecf.errors import ParameterWarning, shown, warn

TABLES = (*PARQUET, ".csv", ".tsv", ".dat")


@dataclass(frozen=True)
class _OneColumn(Layout):
    """The column of one role alone."""

    role: str = "user"

    @property
    def columns(self) -> dict[str, Column]:
        """The column, by its role."""
        return {self.role: getattr(self, self.role)}


def read_ids(
    option: str, given: Iterable[str], column: str, data: DataOptions, known: IdArray | None
) -> NDArray[Any]:
    """Return ids in the type of those that the model knows, each once; files hold lists of them.

    A Parquet file, or a .csv, has them in the `column` ("user" or "item") of the data, which
    --user and --item name; any other file has one id per line.
    """
    found: list[Any] = []
    for text in given:
        path = Path(text)
        found += _read_file(path, column, data) if path.is_file() else [text]
    if not found:
        raise ValueError(f"{option}: there are no ids; give ids, or files with ids")
    if known is not None and known.dtype == object:
        return np.array(list(dict.fromkeys(map(str, found))), dtype=object)
    return np.array(list(dict.fromkeys(_integer(option, each, known) for each in found)))


def only_known(option: str, ids: NDArray[Any], known: IdArray | None, size: int) -> NDArray[Any]:
    """Return the ids that the model knows, with a warning if there are others; raise if none is."""
    index = Index(known, size)
    unknown = ids[index.find(ids) < 0]
    if unknown.size == ids.size:
        index.rows(ids, f"id of {option}")  # raises
    if unknown.size:
        warn(
            f"{option}: {unknown.size:,} of {ids.size:,} ids are unknown to the model and left "
            f"out, such as {shown(unknown.tolist()[0])}",
            ParameterWarning,
        )
    return np.setdiff1d(ids, unknown)


def _integer(option: str, value: Any, known: IdArray | None) -> int:
    try:
        return int(value)
    except ValueError:
        example = 0 if known is None else known[:1].tolist()[0]
        raise KeyError(
            f"{option} {shown(value)} is no file, and no id either: the model's ids are integers, "
            f"such as {example}"
        ) from None


def _read_file(path: Path, column: str, data: DataOptions) -> list[Any]:
    if not strip_compression(path.name).lower().endswith(TABLES):
        return _read_lines(path)
    given = data.layout()
    same: dict[str, Any] = {
        name: getattr(given, name) for name in (column, "separator", "header", "encoding")
    }
    alone = _OneColumn(role=column, **same if given.header else same | {column: 0})
    batches = read_columns(file_source(path, alone), alone)
    return [each for batch in batches for each in batch[column].to_pylist()]


def _read_lines(path: Path) -> list[str]:
    with open_file(path) as file:
        content: bytes = file.read()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path}: it is not written in UTF-8 (byte {problem.start}); give a file with one id "
            "per line, or a .csv or .parquet file"
        ) from None
    return [line.removesuffix("\r") for line in lines if line.strip()]
