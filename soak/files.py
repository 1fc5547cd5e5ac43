"""Damaged and hostile files of every kind: refused with an error of ours, or read correctly.

Never a crash, a hang, code that runs, or memory beyond what the file declares.
"""

import dataclasses
import io
import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

import safecf
from safecf import Evaluation, Interactions, Recommender, compare, datasets
from safecf.data.splits.log import Log
from safecf.evaluation.json_records import sealed
from safecf.models import files
from safecf.models.checkpoint import read_checkpoint
from soak import samples
from soak.attack import attack
from soak.guard import Refused, memory_below, refused_or
from soak.mutations import Generator, damage, dumped, hostile_json, pick

MEMORY = 64 << 20  # of a process that reads a small file, beyond what it had before
REFUSED = "refused: {}"


@contextmanager
def folder() -> Iterator[Path]:
    """Give a folder in memory, if there is one."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="soak-") as name:
        yield Path(name)


@contextmanager
def silence() -> Iterator[None]:
    """Ignore warnings: a hostile file may well be worth one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@attack("A damaged model file is refused; one with hostile values is, or is valid.", cases=10_000)
def damaged_models(rng: Generator) -> str:
    """Load a model; half of the files are damaged, half consistent with hostile contents."""
    contents = samples.model_files()
    name = pick(rng, contents)
    damaged = rng.random() < 0.5
    content = (
        damage(rng, [contents[name], *contents.values()])
        if damaged
        else _hostile_container(rng, contents[name], files.MODEL)
    )
    with folder() as place, silence(), memory_below(MEMORY):
        path = place / "m.safetensors"
        path.write_bytes(content)
        try:
            model = refused_or(lambda: safecf.load(path), str(path))
            check_model(model)
        except Refused as problem:
            return REFUSED.format(problem)
    if damaged and content not in contents.values():
        same = any(_same_model(model, each) for each in samples.models().values())
        assert same or not checksummed(), "a damaged file was loaded as another model"
        return "loaded, the same" if same else "loaded, changed"
    return "loaded, valid"


def check_model(model: Recommender) -> None:
    """Raise unless the model is whole: its arrays are finite, and it recommends known items."""
    users, items = model.sizes()
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), f"{name} is not finite"
    for ids in (model.user_ids, model.item_ids):
        assert ids is None or len(set(ids.tolist())) == ids.size
    history = samples.matrix(3, users=2, items=items) if items < 1000 else None
    if history is None or users < 2:
        return

    def ask() -> None:
        for again in (False, True):
            found, _ = model.recommend([0, 1], history, N=5, recalculate_user=again)
            _check_ids(found, items)
            for row, ids in enumerate(found):
                assert not set(ids.tolist()) & set(history[[row]].indices.tolist())
        _check_ids(model.similar_items([0, items - 1], N=5)[0], items)
        model.save(io.BytesIO())
        repr(model)

    refused_or(ask)


def _check_ids(found: Any, size: int) -> None:
    assert ((found >= -1) & (found < size)).all(), "an item that is not there"
    for row in found:
        known = row[row >= 0]
        assert np.unique(known).size == known.size, "an item twice"


def _same_model(model: Recommender, other: Recommender) -> bool:
    return type(model) is type(other) and all(
        np.array_equal(value, vars(other).get(name, ()))
        for name, value in vars(model).items()
        if isinstance(value, np.ndarray)
    )


@cache
def checksummed() -> bool:
    """Whether a changed bit among the arrays is noticed."""
    content = bytearray(samples.model_files()["EASE"])
    content[-1] ^= 1
    try:
        safecf.load(io.BytesIO(bytes(content)))
    except safecf.FileFormatError:
        return True
    return False


def _hostile_container(rng: Generator, content: bytes, kind: str) -> bytes:
    """Return a file with a hostile header or hostile arrays, as our own writer would write it."""
    length = int.from_bytes(content[:8], "little")
    outer = json.loads(content[8 : 8 + length])
    metadata = outer["__metadata__"]
    chance = rng.random()
    if chance < 0.1:  # offsets, types and shapes of the arrays
        return _framed(dumped(hostile_json(rng, outer)), content[8 + length :])
    if chance < 0.2:  # the length of the header
        lengths = (0, 1, length + 1, 2**31, 2**63, 2**64 - 1, len(content), 100_000_001)
        return pick(rng, lengths).to_bytes(8, "little") + content[8:]
    header, arrays = json.loads(metadata["safecf"]), parse(content)
    header.pop("checksum", None)
    if chance < 0.7:
        changed = hostile_json(rng, header)
    else:
        changed, arrays = header, _hostile_arrays(rng, arrays)
    try:
        found = io.BytesIO()
        files.write(found, changed.pop("kind"), changed, arrays)
        return found.getvalue()
    except Exception:  # our writer cannot write such values: write them without it
        metadata["safecf"] = dumped(changed).decode()
        return bytes(serialise(arrays, metadata={k: str(v) for k, v in metadata.items()}))


def _framed(header: bytes, rest: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + rest


@np.errstate(all="ignore")
def _hostile_arrays(rng: Generator, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return arrays of which one or two have another shape, another type or hostile values."""
    found = {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 3)):
        name = pick(rng, found)
        array = found[name]
        values = (0, -1, 1, 1e30, -1e30, 3e38, np.inf, np.nan, 1e-45, 2**31, 2**62)
        change = rng.integers(9)
        if change == 0:
            del found[name]
            if not found:
                return {}
        elif change == 1:
            found[name] = array[: len(array) // 2]
        elif change == 2:
            found[name] = array[:0]
        elif change == 3:
            found[name] = np.concatenate([array, array])
        elif change == 4:
            found[name] = array[None]
        elif change == 5:
            kinds = (np.float64, np.float16, np.int8, np.int64, np.uint8, np.bool_)
            found[name] = array.astype(pick(rng, kinds))
        elif change == 6:
            found[name] = found[pick(rng, found)]
        elif array.size:
            value = pick(rng, values)
            if change == 7:
                array.reshape(-1)[rng.integers(array.size)] = np.array(value).astype(array.dtype)
            else:
                array[...] = np.array(value).astype(array.dtype)
    return found


@cache
def checkpoint_files() -> dict[str, bytes]:
    """Return checkpoints after the first epoch, by model."""
    found = {}
    with folder() as place:
        for name, make in samples.TRAINED.items():
            path = place / f"{name}.safetensors"
            make().fit(samples.interactions(), False, callback=lambda *_: True, checkpoint=path)
            found[name] = path.read_bytes()
    return found


@cache
def trained(name: str) -> Any:
    """Return the model of an uninterrupted training."""
    return samples.TRAINED[name]().fit(samples.interactions(), show_progress=False)


@attack("A damaged checkpoint is refused; one with hostile values is, or trains.", cases=10_000)
def damaged_checkpoints(rng: Generator) -> str:
    """Resume from a checkpoint that is damaged, or consistent with hostile contents."""
    contents = checkpoint_files()
    name = pick(rng, contents)
    damaged = rng.random() < 0.5
    content = (
        damage(rng, [contents[name], *contents.values()])
        if damaged
        else _hostile_container(rng, contents[name], files.CHECKPOINT)
    )
    with folder() as place, silence(), memory_below(MEMORY):
        path = place / "c.safetensors"
        path.write_bytes(content)
        try:
            refused_or(lambda: read_checkpoint(path), str(path))
            model = refused_or(
                lambda: samples.TRAINED[name]().fit(samples.interactions(), False, resume=path)
            )
        except Refused as problem:
            return REFUSED.format(problem)
        assert path.read_bytes() == content
    assert np.isfinite(model.user_factors).all()
    assert np.isfinite(model.item_factors).all()
    if damaged and content not in contents.values():
        same = _same_model(model, trained(name))
        assert same or not checksummed(), "training went on from a damaged checkpoint"
        return "trained, the same" if same else "trained, changed"
    return "trained"


@attack("A damaged evaluation is refused, or can be shown and compared.", cases=10_000)
def damaged_evaluations(rng: Generator) -> str:
    """Read an evaluation from JSON with hostile values or damaged bytes."""
    records = samples.evaluation_records()
    record: Any = pick(rng, records)
    with silence(), memory_below(MEMORY):
        if rng.random() < 0.3:
            try:
                record = json.loads(damage(rng, [dumped(each) for each in records]))
            except (ValueError, RecursionError):
                return "no JSON"
        else:
            record = hostile_json(rng, record)
        if isinstance(record, dict) and rng.random() < 0.8:
            record.pop("checksum", None)  # so that more than the checksum is tried
            with suppress(TypeError, ValueError, RecursionError):
                record = sealed(record)
        try:
            read = refused_or(lambda: Evaluation.from_dict(record))
            refused_or(lambda: _show(read))
        except Refused as problem:
            return REFUSED.format(problem)
    return "read"


def _show(read: Evaluation) -> None:
    repr(read)
    str(read)
    read.rows(confidence=0.9)
    again = Evaluation.from_dict(json.loads(json.dumps(read.to_dict(resamples=5))))
    assert again.scores.keys() == read.scores.keys()
    compare([read, dataclasses.replace(again, model=f"{read.model} again")], resamples=5).to_dict()


LAYOUT: dict[str, Any] = {
    "rating": "rating",
    "weight": "weight",
    "timestamp": "time",
    "group": "label",
}


@attack("A damaged Parquet file is refused, or read as a valid log.", cases=10_000)
def damaged_parquet(rng: Generator) -> str:
    """Read a Parquet file with damaged bytes."""
    content = damage(rng, samples.tables())
    chosen = {name: LAYOUT[name] for name in LAYOUT if rng.random() < 0.5}
    with folder() as place, silence(), memory_below(2 * MEMORY):
        path = place / "log.parquet"
        path.write_bytes(content)
        try:
            log = refused_or(lambda: datasets.read(path, **chosen), path.name)
            check_log(log)
        except Refused as problem:
            return REFUSED.format(problem)
    return "read"


def check_log(log: Log) -> None:
    """Raise unless the log is whole, and interactions can be made of it or are refused."""
    rows = len(log)
    for codes, ids in ((log.users, log.user_ids), (log.items, log.item_ids)):
        assert codes.shape == (rows,)
        assert rows == 0 or (codes.min() >= 0 and codes.max() < ids.size)
        assert len(set(ids.tolist())) == ids.size, "an id twice"
        assert all(isinstance(each, str | int) for each in ids.tolist())
    if log.weights is not None:
        assert np.isfinite(log.weights).all()
        assert log.weights.min() >= 0
    assert log.timestamps is None or not np.isnat(log.timestamps).any()
    assert log.groups is None or log.groups.shape == log.user_ids.shape
    found = refused_or(lambda: log.interactions(weighted=log.weights is not None))
    assert found.nnz <= rows
    str(found.summary())


@attack("A damaged text file is refused, or read as a valid log.", cases=10_000)
def damaged_csv(rng: Generator) -> str:
    """Read delimited text, plain or compressed, damaged before or after compression."""
    separator = pick(rng, (",", ",", ";", "\t", "::", "|"))
    encoding = pick(rng, ("utf8", "utf8", "latin-1", "utf-16", "cp1252", "utf-8-sig"))
    end, quote = pick(rng, ("\n", "\r\n")), pick(rng, ("", '"'))
    suffix = pick(rng, samples.COMPRESSIONS)
    compress = samples.COMPRESSIONS[suffix]
    texts = [samples.text(separator, end, mark).encode(encoding) for mark in (quote, "")]
    if not suffix or rng.random() < 0.5:
        text = damage(rng, texts)
        content = compress(text)
    else:
        text = None
        content = damage(rng, [compress(each) for each in texts])
    chosen = {name: LAYOUT[name] for name in LAYOUT if rng.random() < 0.3}
    options: dict[str, Any] = {"separator": separator, "encoding": encoding}
    with folder() as place, silence(), memory_below(2 * MEMORY):
        path = place / f"log.csv{suffix}"
        path.write_bytes(content)
        try:
            if rng.random() < 0.3:
                kept = {name: chosen[name] for name in chosen if name in ("rating", "weight")}
                refused_or(lambda: Interactions.from_csv(path, **kept, **options), path.name)
                return "read"
            log = refused_or(lambda: datasets.read(path, **chosen, **options), path.name)
            check_log(log)
        except Refused as problem:
            return REFUSED.format(problem)
    if text is not None and encoding == "utf8" and not {34, 13, 0} & set(text):
        _check_rows(log, text.decode(errors="replace"), separator)
        return "read, and compared"
    return "read"


def _check_rows(log: Log, text: str, separator: str) -> None:
    """Raise unless the log has the rows of a text without quotes."""
    header, *lines = [line.split(separator) for line in text.split("\n") if line]
    for codes, ids, column in (
        (log.users, log.user_ids, "user"),
        (log.items, log.item_ids, "item"),
    ):
        at = header.index(column)
        assert [str(each) for each in ids[codes].tolist()] == [line[at] for line in lines]
