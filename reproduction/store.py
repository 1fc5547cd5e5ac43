"""`Store`: the results of finished cells, one file each."""

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import page
from reproduction.base import Cell, Record, Result, canonical
from reproduction.version import code_version
from safecf.atomic import replace_file
from safecf.data.datasets.download import cache_folder

FORMAT = 1
ARRAY = "float32"  # the key that marks an array


class Store:
    """A folder of results; files are written whole or not at all.

    The name of a file is the sha256 of the cell's function, its settings, the code version and the
    checksum of the data's file; `data` has these checksums by the names of the data sets. For timed
    cells the machine and its number of threads are included.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None = None, data: Mapping[str, str] | None = None
    ) -> None:
        self.folder = cache_folder() / "cells" if folder is None else Path(folder)
        self.data = dict(data or {})
        # by function; a worker gets those of the process that started it
        self.versions: dict[Callable[..., Any], str] = {}
        self.origin, self.threads = page.current_origin(), page.cores()
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file; give a folder with --cells")

    def key(self, cell: Cell) -> str:
        """Return the sha256 of everything that the result of the cell depends on."""
        identity: list[Any] = [
            cell.task,
            cell.settings,
            self.version(cell),
            self.data.get(cell.settings.get("data", ""), ""),
        ]
        if cell.timed:
            identity += [self.origin["machine"], self.threads]
        return hashlib.sha256(canonical(identity).encode()).hexdigest()

    def get(self, cell: Cell) -> Result | None:
        """Return the result, or None if it is missing or damaged."""
        path = self._path(cell)
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != FORMAT or found["settings"] != cell.settings:
                return None
            record, checksum = _decoded(found["record"]), _checksum(found)
            # older files have neither checksum nor origin
            if not isinstance(record, dict) or found.get("sum", checksum) != checksum:
                return None
            return Result(cell.settings, record, float(found["seconds"]), found.get("made", {}))
        except Exception:  # damage can raise anything
            return None

    def put(self, cell: Cell, record: Record, seconds: float) -> None:
        """Write a result."""
        content = {
            "format": FORMAT,
            "task": cell.task,
            "settings": cell.settings,
            "version": self.version(cell),
            "made": dict(self.origin),
            "seconds": round(seconds, 3),
            "record": _encoded(record),
        }
        content["sum"] = _checksum(content)
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, allow_nan=True, ensure_ascii=False)
        replace_file(self._path(cell), text.encode())

    def version(self, cell: Cell) -> str:
        """Return the code version of the cell in the process that made the store."""
        if cell.run not in self.versions:
            self.versions[cell.run] = code_version(cell.run)
        return self.versions[cell.run]

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{self.key(cell)}.json"


def _checksum(content: Mapping[str, Any]) -> str:
    """Return the sha256 of all fields but "sum", where it is stored."""
    kept = {name: value for name, value in content.items() if name != "sum"}
    return hashlib.sha256(canonical(kept).encode()).hexdigest()


def _encoded(value: Any) -> Any:
    """Return JSON values; arrays are compressed float32 in base64."""
    if isinstance(value, dict):
        return {str(name): _encoded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, np.ndarray):
        packed = zlib.compress(np.ascontiguousarray(value, dtype="<f4").tobytes(), 6)
        return {ARRAY: base64.b64encode(packed).decode(), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            content = zlib.decompress(base64.b64decode(value[ARRAY]))
            return np.frombuffer(content, dtype="<f4").reshape(value["shape"]).astype(np.float64)
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value
