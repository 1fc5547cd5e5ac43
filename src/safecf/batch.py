"""Recommendations for many users into a file, in bounded memory."""

import gzip
import json
import os
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

from safecf.atomic import replacing
from safecf.data.matrices.interactions import Interactions
from safecf.models.answers import make_answers
from safecf.models.recommender import Recommender
from safecf.progress import epoch_bar

Sink = IO[bytes] | gzip.GzipFile
Write = Callable[[pa.Table], None]


@dataclass(frozen=True)
class Summary:
    """What was written: rows, users, how many of them are cold, and how long it took.

    Cold users are those of whom nothing is known; they have the most popular items.
    """

    rows: int
    users: int
    cold_users: int
    seconds: float


def recommend_to_file(
    model: Recommender,
    path: str | os.PathLike[str],
    user_items: Interactions | None,
    *,
    users: ArrayLike | None = None,
    N: int = 10,
    filter_already_liked_items: bool = True,
    filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None,
    recalculate_user: bool = False,
    histories: Interactions | None = None,
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
        What the users already have, found by their ids; None only if nothing has to be known of it.
    users
        Ids; None means all in `histories` if that is given, all in `user_items` if they are
        recalculated, and otherwise all that the model knows. A user who is new to the model is
        computed from `user_items`; one who is not in there either is cold. If none is known, that
        is a KeyError.
    N, filter_already_liked_items, filter_items, items, recalculate_user
        As in `Recommender.recommend_frame`.
    histories
        What some users have now, known to the model or not: they are computed from it, and it
        takes the place of their rows in `user_items`.
    show_progress
        Whether to show a progress bar on stderr.

    >>> recommend_to_file(model, "recommendations.parquet", interactions, N=20)
    Summary(rows=120800, users=6040, cold_users=0, seconds=0.4)
    """
    begin = time.perf_counter()
    opened = _opener(path)
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
    total, rows, cold = len(answers.users), 0, 0
    with (
        epoch_bar("recommend", 0, total, show=show_progress) as draw,
        replacing(path) as file,
        opened(file, answers.schema) as write,
    ):
        for done, popular, table in answers.parts():
            write(table)
            rows, cold = rows + table.num_rows, cold + popular
            draw(done, numbers=f"{rows:,} rows")
    return Summary(rows, total, cold, time.perf_counter() - begin)


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


def _opener(path: str | os.PathLike[str]) -> Format:
    """Return what opens a file of the path's format; raise if there is no such format or folder."""
    name = os.fspath(path).lower()
    if not Path(path).absolute().parent.is_dir():
        folder = Path(path).parent
        raise FileNotFoundError(f"{path}: there is no folder {folder}; create it first")
    for suffix, plain in COMPRESSED.items():
        if name.endswith(suffix):
            return lambda file, schema: _gzipped(FORMATS[plain], file, schema)
    for suffix, form in FORMATS.items():
        if name.endswith(suffix):
            return form
    known = ", ".join([*FORMATS, *COMPRESSED])
    raise ValueError(f"{path}: the suffix says no format; known are {known}")
