"""`DataSet`: a public data set, how its files are found and read, and its split in the paper."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from safecf.data.reading.delimited import delimited_source
from safecf.data.reading.layout import Layout, Source
from safecf.data.reading.paths import COMPRESSED, list_members, open_member, strip_compression
from safecf.data.reading.sources import file_source
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.data.splits.protocol import MIN_INTERACTIONS, SEED


@dataclass(frozen=True)
class DataSet:
    """A public data set: where it comes from, its files, and its split in the paper.

    `files` maps the names that the file of interactions may have to their layouts; the first is
    the one in the official archive. `licence` is shown to those who download it. `heldout` users
    are for validation, and as many for the test.
    """

    name: str
    title: str
    url: str
    files: Mapping[str, Layout]
    licence: str
    heldout: int
    md5: str | None = None
    min_rating: float | None = None
    min_user_interactions: int = MIN_INTERACTIONS
    min_item_interactions: int = 1

    @property
    def archive(self) -> str:
        """The name of the official archive."""
        return PurePosixPath(self.url).name

    def find(self, path: str | os.PathLike[str]) -> Path | None:
        """Return `path` if it is a file, or the file or archive in the folder `path`, or None."""
        place = Path(path)
        if not place.is_dir():
            return place if place.is_file() else None
        compressed = [name + end for end in COMPRESSED for name in self.files]
        for folder in (place / self.name, place):
            for name in (*self.files, self.archive, *compressed):
                if (folder / name).is_file():
                    return folder / name
        return None

    def read(self, path: Path, min_rating: float | None = None) -> Log:
        """Read a file, which may be compressed, or the official archive."""
        lowest = self.min_rating if min_rating is None else min_rating
        if path.suffix.lower() == ".zip":
            source, layout = self._archive_source(path, lowest)
        else:
            layout = self._layout(path.name, lowest)
            source = file_source(path, layout)
        return Log.from_sources([source], layout)

    def split(self, log: Log, *, seed: int = SEED) -> Split:
        """Split as the paper does: drop rare items, then rare users, and hold out whole users."""
        return self.filtered(log).strong_generalization(
            heldout=self.heldout, seed=seed, min_interactions=self.min_user_interactions
        )

    def filtered(self, log: Log) -> Log:
        """Drop rare items, then rare users."""
        return log.filtered(
            min_user_interactions=self.min_user_interactions,
            min_item_interactions=self.min_item_interactions,
        )

    def _layout(self, name: str, min_rating: float | None) -> Layout:
        """Return the layout of a file by its name, or by its suffix if the name is another."""
        name = strip_compression(name)
        suffixes = {PurePosixPath(known).suffix: known for known in list(self.files)[::-1]}
        known = name if name in self.files else suffixes.get(PurePosixPath(name).suffix.lower())
        if known is None:
            raise ValueError(
                f"{name} is no file of {self.title}; give {self.archive}, its folder, or "
                f"{' or '.join(self.files)}"
            )
        layout = self.files[known]
        if min_rating is None:
            return layout
        if layout.rating is None:
            raise ValueError(
                f"min_rating={min_rating}, but {self.title} has no ratings; leave it out"
            )
        return replace(layout, min_rating=min_rating)

    def _archive_source(self, path: Path, min_rating: float | None) -> tuple[Source, Layout]:
        """Read from the zip archive, without extracting it."""
        inside = {PurePosixPath(name).name: name for name in list_members(path)}
        known = next((name for name in self.files if name in inside), None)
        if known is None:
            raise ValueError(
                f"{path}: there is no {' or '.join(self.files)} in it; give {self.archive} as "
                f"it is at {self.url}"
            )
        layout = self._layout(known, min_rating)
        name = f"{path}/{known}"
        return delimited_source(name, lambda: open_member(path, inside[known]), layout), layout
