"""Ids by the types of a model: typed one by one, read from files, or those of interactions."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.cli.command_options import DataOptions
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.data.reading.columns import read_columns
from safecf.data.reading.layout import Column, ColumnError, Layout
from safecf.data.reading.paths import COMPRESSED, PARQUET, open_file, strip_compression
from safecf.data.reading.sources import file_source
from safecf.errors import shown
from safecf.models import Recommender

TABLES = (*PARQUET, ".csv", ".tsv", ".dat")
LISTS = (*TABLES, ".txt", *COMPRESSED)


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

    What is a known id is no file: `./7` is the file that is called 7.
    A Parquet file, or a .csv, has them in the `column` ("user" or "item") of the data, which
    --user and --item name, or in one that is called "user" or "item"; any other file has one id
    per line.
    """
    found: list[Any] = []
    for text in given:
        path = Path(text)
        if _is_known(text, known):
            found.append(text)
        elif os.path.isfile(text):  # False for names that are too long to be one
            found += _read_file(option, path, column, data)
        elif path.name.lower().endswith(LISTS):
            raise FileNotFoundError(f"{option} {text}: there is no such file; check the path")
        else:
            found.append(text)
    if not found:
        raise ValueError(f"{option}: there are no ids; give ids, or files with ids")
    ids = dict.fromkeys(typed_id(option, each, known, "no file, and no id") for each in found)
    return np.array(list(ids), dtype=object if _are_strings(known) else np.int64)


def typed_id(option: str, value: Any, known: IdArray | None, otherwise: str = "no id") -> str | int:
    """Return an id in the type of the known ones; raise if that is not possible.

    >>> typed_id("--users", "007", np.array(["ann"], dtype=object))
    '007'
    """
    if _are_strings(known):
        return str(value)
    number = _parsed(value.strip() if isinstance(value, str) else value)
    if number is None:
        example = 0 if known is None else known[:1].tolist()[0]
        raise KeyError(
            f"{option} {shown(value)} is {otherwise}: known ids are integers, such as {example}"
        )
    return number


def in_known_types(interactions: Interactions, model: Recommender) -> Interactions:
    """Return interactions whose ids have the model's types, where that loses nothing.

    Ids 7 and "7" are the same: a text file does not tell which of them is meant.
    """
    return replace(
        interactions,
        user_ids=_in_type(interactions.user_ids, model.user_ids),
        item_ids=_in_type(interactions.item_ids, model.item_ids),
    )


def _is_known(text: str, known: IdArray | None) -> bool:
    """Whether a text is a known id; without ids, all integers are."""
    typed = text if _are_strings(known) else _parsed(text.strip())
    return typed is not None and (known is None or bool((known == typed).any()))


def _in_type(ids: IdArray | None, known: IdArray | None) -> IdArray | None:
    if ids is None or known is None or ids.dtype == known.dtype:
        return ids
    if known.dtype == object:
        return np.array([str(each) for each in ids.tolist()], dtype=object)
    numbers = [_parsed(each) for each in ids.tolist()]
    return ids if None in numbers else np.array(numbers, dtype=np.int64)


def _parsed(value: Any) -> int | None:
    """Return the integer that a text stands for, None if there is none: "007" is a string."""
    try:
        number = int(value)
    except ValueError:
        return None
    fits = -(2**63) <= number < 2**63
    return number if fits and str(number) == str(value) else None


def _are_strings(known: IdArray | None) -> bool:
    return known is not None and known.dtype == object


def _read_file(option: str, path: Path, column: str, data: DataOptions) -> list[Any]:
    if not strip_compression(path.name).lower().endswith(TABLES):
        return _read_lines(path)
    given = data.layout()
    named: Column = getattr(given, column) if given.header else 0
    same = {name: getattr(given, name) for name in ("separator", "header", "encoding")}
    for name in dict.fromkeys((named, column)):
        alone = _OneColumn(role=column, **{**same, column: name})
        try:
            batches = read_columns(file_source(path, alone), alone)
            return [each for batch in batches for each in batch[column].to_pylist()]
        except ColumnError as problem:
            told = str(problem).rpartition("; ")[0]  # without its remedy: a column of the data
    raise ValueError(
        f"{option} {told}; call the column of the ids {column!r}, or write one id per line into a "
        ".txt file"
    )


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
