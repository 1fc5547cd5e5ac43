"""`DataSet`: what is known of a public data set, and how its files are found and read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from safecf.data.matrices.encode import encode
from safecf.data.reading.columns import Layout, Source
from safecf.data.reading.paths import COMPRESSED, members, open_member, without_compression
from safecf.data.reading.readers import file_source
from safecf.data.reading.text import text_source
from safecf.data.splits.log import Log
from safecf.data.splits.strong import Split


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
        compressed = [name + end for end in COMPRESSED for name in self.files]
        for folder in (place / self.name, place):
            for name in (*self.files, self.archive, *compressed):
                if (folder / name).is_file():
                    return folder / name
        return None

    def read(self, path: Path, min_rating: float | None = None) -> Log:
        """Return the interactions of a file, compressed or not, or of the official archive."""
        lowest = self.min_rating if min_rating is None else min_rating
        if path.suffix.lower() == ".zip":
            source, layout = self._archived(path, lowest)
        else:
            layout = self._layout(path.name, lowest)
            source = file_source(path, layout)
        return Log.of(encode([source], layout, integers_in_text=True))

    def split(self, log: Log, *, seed: int = 98765) -> Split:
        """Split as the paper does: rare items, then rare users go, whole users are held out."""
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
        """Return how to read a file of this name, or of another name with such a suffix."""
        name = without_compression(name)
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
                f"min_rating is {min_rating}, but {self.title} has no ratings; leave it out"
            )
        return replace(layout, min_rating=min_rating)

    def _archived(self, path: Path, min_rating: float | None) -> tuple[Source, Layout]:
        """Read straight from the archive; nothing is extracted."""
        inside = {PurePosixPath(name).name: name for name in members(path)}
        known = next((name for name in self.files if name in inside), None)
        if known is None:
            raise ValueError(
                f"{path}: there is no {' or '.join(self.files)} in it; give {self.archive} as "
                f"it is at {self.url}"
            )
        layout = self._layout(known, min_rating)
        name = f"{path}/{known}"
        return text_source(name, lambda: open_member(path, inside[known]), layout), layout
