"""Histories: the records of a model's epochs as JSON values, and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from safecf.errors import FileFormatError
from safecf.models import files

Record = TypeVar("Record")


def pack_history(history: list[Any]) -> list[dict[str, Any]]:
    """Return the records as JSON values."""
    return [asdict(record) for record in history]


def unpack_history(record: Mapping[str, Any], kind: type[Record]) -> list[Record]:
    """Take `record["history"]` back as records of that kind, with every value of its type.

    All fields are floats but for `epoch`, an integer, and `seconds`, by step. One whose default is
    None may be None.
    """
    history = []
    for entry in files.field(record, "history", list):
        if not isinstance(entry, dict):
            raise FileFormatError("its history is damaged; save it again")
        history.append(kind(**{each.name: _value(entry, each) for each in fields(kind)}))  # type: ignore[arg-type]
    return history


def _value(entry: Mapping[str, Any], column: Any) -> Any:
    name = column.name
    if name == "seconds":
        seconds = files.field(entry, name, dict)
        return {step: files.field(seconds, step, float) for step in seconds}
    if column.default is None and entry.get(name) is None:
        return None
    return files.field(entry, name, int if name == "epoch" else float)
