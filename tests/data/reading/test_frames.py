"""pandas, polars and Arrow give the same interactions; neither pandas nor polars is imported."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import Interactions
from tests.data.rows import entries

COLUMNS = {
    "user": ["ann", "bob", "ann", "é"],
    "item": [30, 10, 10, 10],
    "stars": [5.0, 4.0, 2.0, 4.5],
    "noise": [None, "x", None, "y"],
}
EXPECTED = {("ann", 30): 5.0, ("bob", 10): 4.0, ("é", 10): 4.5}

FRAMES = {
    "dict": lambda: COLUMNS,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, objects": lambda: pd.DataFrame(COLUMNS).astype({"user": object}),
    "pandas, strings": lambda: pd.DataFrame(COLUMNS).astype({"user": "string", "item": "Int64"}),
    "pandas, categories": lambda: pd.DataFrame(COLUMNS).astype({"user": "category"}),
    "pandas, an index": lambda: pd.DataFrame(COLUMNS, index=[9, 8, 7, 6]),
    "pandas, anything": lambda: pd.DataFrame(COLUMNS).assign(noise=[1, "a", (), object()]),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, categories": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("user").cast(pl.Categorical)
    ),
    "polars, small integers": lambda: pl.DataFrame(COLUMNS).cast({"item": pl.UInt8}),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow, dictionaries": lambda: pa.table(
        COLUMNS | {"user": pa.array(COLUMNS["user"]).dictionary_encode()}
    ),
    "arrow, chunks": lambda: pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "record batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "reader": lambda: pa.table(COLUMNS).to_reader(max_chunksize=1),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame(kind):
    found = Interactions.from_frame(FRAMES[kind](), rating="stars", weight="stars", min_rating=4)
    assert entries(found) == EXPECTED
    assert found.user_ids.tolist() == ["ann", "bob", "é"]
    assert found.item_ids.tolist() == [30, 10]
    assert found.item_ids.dtype == np.int64


def test_pandas_columns_may_be_numbers():
    frame = pd.DataFrame([[1, 2], [1, 3]])
    assert entries(Interactions.from_frame(frame, user=0, item=1)) == {(1, 2): 1, (1, 3): 1}


def test_neither_pandas_nor_polars_is_imported():
    code = "import sys; from safecf import *; sys.exit(bool({'pandas', 'polars'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_columns_of_one_name_are_chosen_by_position(tmp_path):
    values = [pa.array([1]), pa.array([2]), pa.array([3])]
    table = pa.Table.from_arrays(values, names=["user", "user", "item"])
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="2 columns 'user'; rename them, or give a position, such"):
        Interactions.from_parquet(tmp_path)
    for user in (0, 1):
        found = [
            Interactions.from_frame(table, user=user),
            Interactions.from_frame(
                pd.DataFrame([[1, 2, 3]], columns=table.column_names), user=user
            ),
            Interactions.from_parquet(tmp_path, user=user),
        ]
        assert [each.user_ids.tolist() for each in found] == [[user + 1]] * 3
