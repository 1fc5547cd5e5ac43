"""`DataSet`: what is known of a public data set, and how its files are found and read."""

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from safecf.data.columns import Columns, Source
from safecf.data.encode import encode
from safecf.data.log import Log
from safecf.data.paths import naming_damage, open_bytes
from safecf.data.readers import csv_source, parquet_source
from safecf.data.split import Split


@dataclass(frozen=True)
class Layout:
    """What the columns of a file mean; the options are those of a text file."""

    columns: Columns
    separator: str = ","
    header: bool = True

    def source(self, name: str, open_file: Callable[[], Any]) -> Source:
        """Return the rows of a text file."""
        return csv_source(
            name, open_file, self.columns, separator=self.separator, header=self.header
        )


@dataclass(frozen=True)
class DataSet:
    """A public data set: where it comes from, its files, and the paper's split of it.

    `files` says how to read each of the names that its interactions may have; the first is the
    one in the official archive. `licence` is a line for those who download it.
    """

    name: str
    title: str
    url: str
    files: Mapping[str, Layout]
    licence: str
    heldout: int
    md5: str | None = None
    min_rating: float | None = None
    min_user_interactions: int = 5
    min_item_interactions: int = 1

    @property
    def archive(self) -> str:
        """The name of the official archive."""
        return PurePosixPath(self.url).name

    def find(self, path: str | os.PathLike[str]) -> Path | None:
        """Return the file or archive that `path` is, or that lies in the folder `path`."""
        place = Path(path)
        if not place.is_dir():
            return place if place.is_file() else None
        for folder in (place / self.name, place):
            for name in (*self.files, self.archive):
                if (folder / name).is_file():
                    return folder / name
        return None

    def read(self, path: Path, min_rating: float | None = None) -> Log:
        """Return the interactions of a file or of the official archive."""
        lowest = self.min_rating if min_rating is None else min_rating
        if path.suffix.lower() == ".zip":
            source, columns = self._archived(path, lowest)
        else:
            layout = self._layout(path.name, lowest)
            columns = layout.columns
            if path.suffix.lower() == ".parquet":
                source = parquet_source(path, columns)
            else:
                source = layout.source(str(path), lambda: open_bytes(path))
        kept = ("rating", "weight", "timestamp")
        return Log.of(encode([source], columns, keep=kept, integers_in_text=True))

    def split(self, log: Log, *, seed: int = 98765) -> Split:
        """Split as the paper does: rare items, then rare users go, whole users are held out."""
        filtered = log.filtered(
            min_user_interactions=self.min_user_interactions,
            min_item_interactions=self.min_item_interactions,
        )
        return filtered.strong_generalization(
            heldout=self.heldout, seed=seed, min_interactions=self.min_user_interactions
        )

    def _layout(self, name: str, min_rating: float | None) -> Layout:
        """Return how to read a file of this name, or of another name with such a suffix."""
        suffixes = {PurePosixPath(known).suffix: known for known in list(self.files)[::-1]}
        known = name if name in self.files else suffixes.get(PurePosixPath(name).suffix.lower())
        if known is None:
            raise ValueError(
                f"{name} is no file of {self.title}; give {self.archive}, its folder, or "
                f"{' or '.join(self.files)}"
            )
        layout = self.files[known]
        if min_rating is None or layout.columns.rating is None:
            return layout
        return replace(layout, columns=replace(layout.columns, min_rating=min_rating))

    def _archived(self, path: Path, min_rating: float | None) -> tuple[Source, Columns]:
        """Read straight from the archive; nothing is extracted."""
        with naming_damage(str(path)), zipfile.ZipFile(path) as archive:
            members = {PurePosixPath(name).name: name for name in archive.namelist()}
        known = [name for name in self.files if name in members]
        if not known:
            raise ValueError(
                f"{path}: there is no {' or '.join(self.files)} in it; give {self.archive} as "
                f"it is at {self.url}"
            )
        layout = self._layout(known[0], min_rating)

        def open_member() -> Any:
            with zipfile.ZipFile(path) as archive:
                return archive.open(members[known[0]])

        return layout.source(f"{path}/{known[0]}", open_member), layout.columns
