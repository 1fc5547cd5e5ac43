"""Errors of tasks as one machine would raise them: rows by their ids, options by their Params."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from safecf.errors import ChangedDataError, SolveError
from safecf.models.als import ALSModel
from safecf.spark.params import param_name

SIDES = "user", "item"
KINDS = {kind.__name__: kind for kind in (SolveError, ChangedDataError)}
RAISED = re.compile(rf"^safecf\.errors\.({'|'.join(KINDS)}): (.*)", re.MULTILINE)


@contextmanager
def placing(side: int, block: int) -> Iterator[None]:
    """Say in a task whose row could not be solved: "user of block 3, row 17"."""
    try:
        yield
    except ValueError as problem:
        raise SolveError(str(problem)) from problem
    except SolveError as problem:
        if problem.row is None:
            raise
        raise SolveError(f"{SIDES[side]} of block {block}, {problem}") from None


@contextmanager
def plain_errors(local: ALSModel, indices: list[DataFrame]) -> Iterator[None]:
    """Raise what a task has raised, without the executor's traceback.

    `indices` has id, block and position of users and of items, once they are known.
    """
    try:
        yield
    except (PythonException, SolveError) as problem:
        if isinstance(problem, SolveError):
            raise SolveError(_plain(str(problem), local, indices)) from None
        found = RAISED.search(str(problem))
        if found is None:
            raise
        raise KINDS[found[1]](_plain(found[2], local, indices)) from None


def _plain(message: str, local: ALSModel, indices: list[DataFrame]) -> str:
    """Return a message with the id of the row that it is about, and the names of Params."""
    row = re.match(rf"({'|'.join(SIDES)}) of block (\d+), row (\d+)", message)
    if row is not None and indices:
        here = (F.col("block") == int(row[2])) & (F.col("position") == int(row[3]))
        rows = indices[SIDES.index(row[1])].where(here).select("id").collect()
        if rows:
            message = f"{row[1]} {rows[0].id!r}{message[row.end() :]}"
    for option in local.get_params():
        message = re.sub(rf"\b{option}\b", param_name(option), message)
    return message
