"""Recommendations for many users into a file, in bounded memory."""

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import ArrayLike

from safecf.atomic import replace_file, replacing
from safecf.data.matrices.interactions import Interactions
from safecf.models.answers import Answers, make_answers
from safecf.models.recommender import Recommender
from safecf.progress import epoch_bar

QUESTION = "fingerprint"  # of what the parts in a folder answer
Sink = IO[bytes] | gzip.GzipFile
Write = Callable[[pa.Table], None]


@dataclass(frozen=True)
class Summary:
    """What was written: rows, for how many of the users that were asked for, and how long it took.

    Cold users are those of whom nothing is known; they have the most popular items. Empty users
    have no row, because no item is left for them.
    """

    rows: int
    users: int
    cold_users: int
    empty_users: int
    seconds: float


def recommend_to_file(
    model: Recommender,
    path: str | os.PathLike[str],
    user_items: Interactions | None = None,
    *,
    users: ArrayLike | None = None,
    N: int = 10,
    filter_already_liked_items: bool = True,
    filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None,
    recalculate_user: bool = False,
    histories: Interactions | None = None,
    resume: bool = False,
    show_progress: bool = True,
) -> Summary:
    """Write the N best items of users into a file, by their original ids.

    The columns are those of `Recommender.recommend_frame`: user, item, score, rank and popular, a
    row for every user and item, by user and rank. Users are answered some thousands at a time, so
    that the memory does not grow with their number. The file is written whole or not at all: an
    error or Ctrl-C leaves what was there before.

    Parameters
    ----------
    model
        A fitted model.
    path
        A file that ends in .parquet, .csv, .jsonl, .csv.gz or .jsonl.gz.
    user_items
        What the users already have, found by their ids. It is needed for users of the model who
        are not in `histories`, unless `filter_already_liked_items` is False.
    users
        Ids; None means all in `histories` if that is given, all in `user_items` if they are
        recalculated, and otherwise all that the model knows. A user who is new to the model is
        computed from `user_items`; one who is not in there either is cold. Who is listed twice is
        answered twice.
    N, filter_already_liked_items, filter_items, items, recalculate_user
        As in `Recommender.recommend_frame`.
    histories
        What some users have now, known to the model or not: they are computed from it, and it
        takes the place of their rows in `user_items`.
    resume
        Whether to keep what is answered in the folder `parts_folder(path)` until the file is
        written, and to go on from there if a call with the same model, data and options was
        interrupted or killed. The file is the same as without a break.
    show_progress
        Whether to show a progress bar on stderr.

    Examples
    --------
    >>> recommend_to_file(model, "recommendations.parquet", interactions, N=20)
    Summary(rows=120800, users=6040, cold_users=0, empty_users=0, seconds=0.4)
    """
    begin = time.perf_counter()
    opened = opener(path)
    answers = make_answers(
        model,
        users,
        N,
        user_items=user_items,
        filter_already_liked_items=filter_already_liked_items,
        recalculate_user=recalculate_user,
        filter_items=filter_items,
        items=items,
        histories=histories,
        cold=True,
    )
    kept = _begin_parts(path, answers) if resume else None
    total, rows, cold, answered = len(answers.users), 0, 0, 0
    with (
        epoch_bar("recommend", 0, total, show=show_progress) as draw,
        replacing(path) as file,
        opened(file, answers.schema) as write,
    ):
        for done, table in _parts(answers, kept):
            write(table)
            first = pc.equal(table["rank"], 1)
            rows, answered = rows + table.num_rows, answered + _count(first)
            cold += _count(pc.and_(first, table["popular"]))
            draw(done, numbers=f"{rows:,} rows")
    if (parts_folder(path) / QUESTION).is_file():  # also what an earlier call has left
        shutil.rmtree(parts_folder(path), ignore_errors=True)
    return Summary(rows, total, cold, total - answered, time.perf_counter() - begin)


def parts_folder(path: str | os.PathLike[str]) -> Path:
    """Return where answers are kept until their file is written.

    >>> parts_folder("out/best.parquet")
    PosixPath('out/.best.parquet.parts')
    """
    return Path(path).with_name(f".{Path(path).name}.parts")


def _begin_parts(path: str | os.PathLike[str], answers: Answers) -> Path:
    """Return the folder of parts, emptied if it has those of another question."""
    folder, fingerprint = parts_folder(path), answers.fingerprint().encode()
    question = folder / QUESTION
    if not question.is_file() or question.read_bytes() != fingerprint:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        replace_file(question, fingerprint)
    return folder


def _parts(answers: Answers, kept: Path | None) -> Iterator[tuple[int, pa.Table]]:
    """Yield how many users are done, and a table; what is kept is not computed again."""
    for start, stop in answers.slices():
        file = None if kept is None else kept / f"{start}.arrow"
        if file is not None and file.is_file():
            yield stop, pa.ipc.open_file(pa.py_buffer(file.read_bytes())).read_all()
            continue
        table = answers.part(start, stop)
        if file is not None:
            content = pa.BufferOutputStream()
            with pa.ipc.new_file(content, table.schema) as writer:
                writer.write_table(table)
            replace_file(file, content.getvalue())
        yield stop, table


def _count(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)


@contextmanager
def parquet_file(file: Sink, schema: pa.Schema) -> Iterator[Write]:
    """Write tables as row groups."""
    with pa.parquet.ParquetWriter(file, schema) as writer:
        yield writer.write_table


@contextmanager
def csv_file(file: Sink, schema: pa.Schema) -> Iterator[Write]:
    """Write a header and lines; strings are in quotes."""
    with pa.csv.CSVWriter(file, schema) as writer:
        yield writer.write_table


@contextmanager
def jsonl_file(file: Sink, schema: pa.Schema) -> Iterator[Write]:
    """Write a JSON object for every row."""

    def write(table: pa.Table) -> None:
        for batch in table.to_batches():
            file.write(json_lines(batch))

    yield write


def json_lines(batch: pa.RecordBatch) -> memoryview:
    r"""Return the rows as lines of JSON.

    >>> bytes(json_lines(pa.record_batch({"user": ["ann"], "rank": [1]})))
    b'{"user": "ann", "rank": 1}\n'
    """
    parts: list[Any] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts += [f"{', ' if parts else '{'}{json.dumps(name)}: ", _json_values(column)]
    text = pa.large_string()
    parts = [part if isinstance(part, pa.Array) else pa.scalar(part, text) for part in parts]
    lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n", text), pa.scalar("", text))
    _, _, data = lines.buffers()  # the texts, one after the other
    return memoryview(data or b"")


def _json_values(column: pa.Array) -> pa.Array:
    """Return the values of a column as JSON; a number that is not finite is null."""
    text = pa.large_string()
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), pc.cast(column, text), "null").cast(text)
    if not pa.types.is_large_string(column.type) and not pa.types.is_string(column.type):
        return pc.cast(column, text)
    found = column.dictionary_encode()
    values = [json.dumps(value, ensure_ascii=False) for value in found.dictionary.to_pylist()]
    return pa.array(values, type=text).take(found.indices)


Format = Callable[[Sink, pa.Schema], AbstractContextManager[Write]]

FORMATS: dict[str, Format] = {".parquet": parquet_file, ".csv": csv_file, ".jsonl": jsonl_file}
COMPRESSED = {".csv.gz": ".csv", ".jsonl.gz": ".jsonl"}


@contextmanager
def _gzipped(form: Format, file: Sink, schema: pa.Schema) -> Iterator[Write]:
    with (
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
        form(packed, schema) as write,
    ):
        yield write


def opener(path: str | os.PathLike[str]) -> Format:
    """Return what opens a file of the path's format; raise if there is no such format or folder."""
    if not Path(path).absolute().parent.is_dir():
        folder = Path(path).parent
        raise FileNotFoundError(f"{path}: there is no folder {folder}; create it first")
    suffix = suffix_of(path)
    if suffix in FORMATS:
        return FORMATS[suffix]
    return lambda file, schema: _gzipped(FORMATS[COMPRESSED[suffix]], file, schema)


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that says the format; raise if there is none.

    >>> suffix_of("best of 2024.CSV.gz")
    '.csv.gz'
    """
    known = (*COMPRESSED, *FORMATS)
    for suffix in known:
        if os.fspath(path).lower().endswith(suffix):
            return suffix
    raise ValueError(f"{path}: the suffix says no format; end it in {', '.join(known)}")


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write a table in the format that the suffix says, whole or not at all.

    >>> write_table("similar.csv", model.similar_items_frame("Alien"))
    """
    opened = opener(path)
    with replacing(path) as file, opened(file, table.schema) as write:
        write(table)
