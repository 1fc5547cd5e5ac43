"""Damaged folders of splits and files of studies."""

import contextlib
import json
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from safecf import IALS, tune
from safecf.cli.command_options import DataOptions
from safecf.cli.inputs import load_data
from safecf.cli.split_options import SplitOptions
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.data.splits.split_files import FILES, write_split
from safecf.split import strong_generalization
from soak import samples
from soak.attack import attack
from soak.files import MEMORY, REFUSED, folder, silence
from soak.guard import Refused, memory_below, refused_or
from soak.mutations import Generator, damage, hostile_json, pick


@cache
def _log() -> Log:
    return Log.of_matrix(samples.matrix(2, users=60, items=20))


@cache
def split_files() -> dict[str, bytes]:
    """Return the six files of a split, by name."""
    with folder() as place:
        made = _log().strong_generalization(heldout=10, min_interactions=1)
        write_split(made, _log(), place / "split")
        return {name: (place / "split" / name).read_bytes() for name in FILES}


def read_split(place: Path) -> Split:
    """Read a folder of a split as every command does."""
    return load_data(DataOptions([str(place)])).split(SplitOptions())


@attack("A damaged folder of a split is refused, or read as a valid split.", cases=10_000)
def damaged_splits(rng: Generator) -> str:
    """Read a split of which one or two files are damaged, missing or exchanged."""
    contents = dict(split_files())
    for _ in range(rng.integers(1, 3)):
        name, change = pick(rng, FILES), rng.random()
        if change < 0.1:
            contents.pop(name, None)
        elif change < 0.2:
            contents[name] = contents.get(pick(rng, FILES), b"")
        elif change < 0.3:
            number = pick(rng, (-1, 2**31, 2**63, 10**30, 1.5, "nan", "", "x", 10**9))
            contents[name] = contents.get(name, b"") + f"{number},{number}\n".encode()
        else:
            contents[name] = damage(rng, [contents.get(name, b""), *split_files().values()])
    with folder() as place, silence(), memory_below(2 * MEMORY):
        for name, content in contents.items():
            (place / name).write_bytes(content)
        try:
            check_split(refused_or(lambda: read_split(place), str(place)))
        except Refused as problem:
            return REFUSED.format(problem)
    return "read"


def check_split(split: Split) -> None:
    """Raise unless the parts of a split fit together."""
    users = split.train.shape[0]
    for held_out in (split.validation, split.test):
        for matrix in (held_out.history, held_out.target):
            assert matrix.shape[1] == split.train.shape[1]
            assert np.isfinite(matrix.data).all()
            assert matrix.nnz == 0 or 0 <= matrix.indices.min() <= matrix.indices.max()
            assert matrix.nnz == 0 or matrix.indices.max() < matrix.shape[1]
        assert held_out.history.shape == held_out.target.shape
        assert held_out.history.multiply(held_out.target).nnz == 0, "an item in both parts"
        users += held_out.history.shape[0]
    assert len(split.item_ids) == split.train.shape[1]
    assert len(set(split.item_ids.tolist())) == split.train.shape[1]
    assert len(split.user_ids) == users


def _tune(path: Path) -> Any:
    pairs = samples.matrix(2, users=60, items=20).tocoo()
    split = strong_generalization(pairs.row, pairs.col, heldout=10, min_interactions=1, seed=1)
    return tune(IALS(**samples.SMALL), split, trials=2, study=path, show_progress=False)


@cache
def study_file() -> bytes:
    """Return the file of a study with two trials."""
    with folder() as place:
        _tune(place / "s.sqlite")
        return (place / "s.sqlite").read_bytes()


TABLES = ("study_user_attributes", "trial_user_attributes")


@attack("A damaged study is refused, or the search goes on.", cases=2_000, seconds=120.0)
def damaged_studies(rng: Generator) -> str:
    """Go on with a study whose bytes are damaged, or whose records have hostile values."""
    with folder() as place, silence(), memory_below(4 * MEMORY):
        path = place / "s.sqlite"
        damaged = rng.random() < 0.5
        path.write_bytes(damage(rng, [study_file()]) if damaged else study_file())
        if not damaged:
            _edit(rng, path)
        try:
            found = refused_or(lambda: _tune(path), writes=True)
        except Refused as problem:
            return REFUSED.format(problem)
    assert len(found.searches[0].trials) >= 1
    assert np.isfinite(found.best_model.item_factors).all()
    return "went on"


def _edit(rng: Generator, path: Path) -> None:
    """Replace a record of ours in the file by hostile values."""
    table = pick(rng, TABLES)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        rows = file.execute(f"select rowid, value_json from {table}").fetchall()
        number, text = pick(rng, rows)
        record = hostile_json(rng, json.loads(text))
        if isinstance(record, dict) and rng.random() < 0.8:
            record.pop("checksum", None)  # so that more than the checksum is tried
        changed = json.dumps(record)
        file.execute(f"update {table} set value_json = ? where rowid = ?", (changed, number))
