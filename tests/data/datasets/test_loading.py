"""The public data sets, read from small files in their official formats."""

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import datasets
from safecf.split import strong_generalization
from tests.data.official import LIKED, OFFICIAL, ROWS, SONGS, archive, ml_1m_text
from tests.data.rows import entries
from tests.helpers import refused


def rows_of(log):
    values = log.weights if log.ratings is None else log.ratings
    columns = [log.user_ids[log.users], log.item_ids[log.items], values]
    if log.timestamps is not None:
        columns.append(log.timestamps.astype("datetime64[s]").astype(np.int64))
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("name", OFFICIAL)
@pytest.mark.parametrize("form", ["archive", "its folder", "file", "extracted", "above"])
def test_every_form_of_the_official_files(tmp_path, name, form):
    member, text, expected = OFFICIAL[name]
    path = archive(tmp_path, name)
    if form != "archive":
        path = tmp_path
    if form in ("file", "extracted", "above"):
        (tmp_path / datasets.DATASETS[name].archive).unlink()
        file = tmp_path / name / member.split("/")[-1]
        file.parent.mkdir()
        file.write_text(text)
        path = {"file": file, "extracted": file.parent, "above": tmp_path}[form]
    log = datasets.load(name, path)
    assert rows_of(log) == expected
    assert log.users.dtype == log.items.dtype == np.int32
    for ids in (log.user_ids, log.item_ids):
        assert ids.tolist() == sorted(set(ids.tolist()))
    assert log.user_ids.dtype == (object if name == "msd" else np.int64)


def test_parquet_files_with_user_item_and_rating(tmp_path):
    columns = zip(*(row[:3] for row in ROWS), strict=True)
    table = pa.table(dict(zip(("user", "item", "rating"), map(list, columns), strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / "ml-1m.parquet")
    for path in (tmp_path, str(tmp_path / "ml-1m.parquet")):
        log = datasets.load("ml-1m", path)
        assert rows_of(log) == [row[:3] for row in LIKED]
        assert log.timestamps is None


def test_the_lowest_rating_may_be_chosen(tmp_path):
    path = archive(tmp_path, "ml-1m")
    assert rows_of(datasets.load("ml-1m", path, min_rating=0)) == ROWS
    assert {row[2] for row in rows_of(datasets.load("ml-1m", path, min_rating=5))} == {5}


def test_search_order_without_a_path(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SAFECF_DATA", str(tmp_path / "data"))
    message = r"MovieLens-1M is not in .*cache; pass path=.*https://files\.grouplens\.org"
    with pytest.raises(FileNotFoundError, match=message):
        datasets.load("ml-1m", download=False)
    (tmp_path / "cache").mkdir()
    archive(tmp_path / "cache", "ml-1m")
    assert rows_of(datasets.load("ml-1m", download=False)) == LIKED
    (tmp_path / "data" / "ratings.dat").write_text("1::2::5::3\n")
    assert rows_of(datasets.load("ml-1m", download=False)) == [(1, 2, 5, 3)]


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_truncated_and_damaged_archives(tmp_path, share):
    path = archive(tmp_path, "ml-20m")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refused(ValueError, "ml-20m.zip: it is cut off or damaged ", "download it"):
        datasets.load("ml-20m", path)
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    with refused(ValueError, "ratings.csv: it is cut off or damaged"):
        datasets.load("ml-20m", path)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder has no ratings\.csv or .*\.zip; get"):
        datasets.load("ml-20m", tmp_path)
    songs, other = archive(tmp_path, "msd"), tmp_path / "ratings.json"
    other.write_text("{}")
    for error, name, path, *words in (
        (FileNotFoundError, "ml-1m", tmp_path / "nowhere", "does not exist; ", "ratings.dat or"),
        (ValueError, "ml-1m", songs, "there is no ratings.dat or ml-1m.parquet in it"),
        (ValueError, "ml-1m", other, "ratings.json is no file of MovieLens-1M; give"),
        (ValueError, "ml-2m", None, "unknown data set 'ml-2m': did you mean 'ml-20m'"),
    ):
        with refused(error, *words):
            datasets.load(name, path)
    with refused(ValueError, "min_rating=3, but the Million Song ", " has no rat"):
        datasets.load("msd", songs, min_rating=3)


def small(monkeypatch, name, **numbers):
    """Change numbers of a data set, so that a small file can be split."""
    monkeypatch.setitem(datasets.DATASETS, name, replace(datasets.DATASETS[name], **numbers))


@pytest.mark.parametrize("name", ["ml-1m", "ml-20m"])
def test_the_papers_split_of_integers(tmp_path, monkeypatch, name):
    small(monkeypatch, name, heldout=5)
    split = datasets.paper_split(name, archive(tmp_path, name), seed=3)
    users, items = np.transpose([row[:2] for row in LIKED])
    expected = strong_generalization(users, items, heldout=5, seed=3)
    assert_same_split(split, expected, expected.user_ids.tolist(), expected.item_ids.tolist())


def test_the_papers_split_of_strings(tmp_path, monkeypatch):
    """Rare items go first, then rare users; users are shuffled in the order of their ids."""
    small(monkeypatch, "msd", heldout=5, min_user_interactions=9, min_item_interactions=14)
    split = datasets.paper_split("msd", archive(tmp_path, "msd"))
    rows = SONGS
    for at, minimum in ((1, 14), (0, 9)):
        names, counts = np.unique([row[at] for row in rows], return_counts=True)
        kept = set(names[counts >= minimum].tolist())
        assert len(kept) < names.size
        rows = [row for row in rows if row[at] in kept]
    user_names, users = np.unique([row[0] for row in rows], return_inverse=True)
    item_names, items = np.unique([row[1] for row in rows], return_inverse=True)
    expected = strong_generalization(users, items, heldout=5, min_interactions=9)
    names = user_names[expected.user_ids].tolist(), item_names[expected.item_ids].tolist()
    assert_same_split(split, expected, *names)


def assert_same_split(split, expected, user_ids, item_ids):
    assert split.user_ids.tolist() == user_ids
    assert split.item_ids.tolist() == item_ids
    assert (split.train != expected.train).nnz == 0
    for ours, theirs in ((split.validation, expected.validation), (split.test, expected.test)):
        assert (ours.history != theirs.history).nnz == 0
        assert (ours.target != theirs.target).nnz == 0


def test_a_log_gives_interactions(tmp_path):
    log = datasets.load("msd", archive(tmp_path, "msd"))
    expected = {row[:2]: 1.0 for row in SONGS}
    found = log.interactions()
    assert entries(found) == expected
    assert found.user_ids.tolist() == list(dict.fromkeys(row[0] for row in SONGS))
    assert found.item_ids.tolist() == list(dict.fromkeys(row[1] for row in SONGS))
    assert entries(log.interactions(weighted=True)) == {row[:2]: row[2] for row in SONGS}
    few = log.interactions(min_user_interactions=9, min_item_interactions=14)
    again = log.filtered(min_user_interactions=9, min_item_interactions=14)
    assert entries(again.interactions()) == entries(few)
    assert len(again) == few.nnz < len(log)
    assert repr(log) == f"Log({len(SONGS)} interactions of 40 users with 30 items, weights)"


def test_any_file_by_its_columns(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("when,page,visitor\n3,b,x\n1,a,x\n2,b,y\n1,b,x\n")
    log = datasets.read(path, user="visitor", item="page", timestamp="when")
    assert (log.user_ids.tolist(), log.users.tolist()) == (["x", "y"], [0, 0, 1, 0])
    assert (log.item_ids.tolist(), log.items.tolist()) == (["a", "b"], [1, 0, 1, 1])
    np.testing.assert_array_equal(log.timestamps, np.array([3, 1, 2, 1], "datetime64[s]"))
    assert log.timestamps.dtype == "datetime64[us]"
    assert log.ratings is None
    assert entries(log.interactions()) == {("x", "b"): 1, ("x", "a"): 1, ("y", "b"): 1}
    with refused(ValueError, "the log has no weights; read it with weight="):
        log.interactions(weighted=True)
    with refused(ValueError, "no interaction is left of 4; lower"):
        log.filtered(min_user_interactions=3)


def test_compressed_files_of_a_data_set(tmp_path):
    path = tmp_path / "ratings.dat.gz"
    path.write_bytes(gzip.compress(ml_1m_text(ROWS).encode()))
    for given in (path, tmp_path):
        assert rows_of(datasets.load("ml-1m", given)) == LIKED
