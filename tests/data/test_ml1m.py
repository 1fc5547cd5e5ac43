"""The MovieLens-1M loader: the file it looks for, and what it keeps of it."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from safecf.data import ml1m


def write(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "ml-1m.parquet", user=[3, 1, 3, 2], item=[7, 8, 9, 7], rating=[4, 3, 5, 1])
    return tmp_path


def assert_positive_ratings(loaded):
    users, items = loaded
    np.testing.assert_array_equal(users, [3, 3])
    np.testing.assert_array_equal(items, [7, 9])
    assert users.dtype == items.dtype == np.int64


def test_ratings_of_4_and_5_are_kept_in_file_order(folder):
    assert_positive_ratings(ml1m.load(folder))
    assert_positive_ratings(ml1m.load(str(folder / "ml-1m.parquet")))


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("SAFECF_DATA", str(folder))
    assert_positive_ratings(ml1m.load())


def test_without_path_and_environment(monkeypatch):
    monkeypatch.delenv("SAFECF_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"pass load\(path\), or set SAFECF_DATA"):
        ml1m.load()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ml-1m\.parquet does not exist; write"):
        ml1m.load(tmp_path)


def test_missing_columns_are_named(tmp_path):
    path = write(tmp_path / "other.parquet", user=[1], movie=[2], stars=[5])
    with pytest.raises(ValueError, match=r"no column item, rating; rename"):
        ml1m.load(path)
