"""The data of experiments: found, split as in the paper, and identified by checksums."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from reproduction import data
from reproduction.tasks.quality import users_of
from safecf.data.splits.strong_generalization import repeated_strong_generalization


@pytest.fixture
def check_ins(tmp_path):
    """Return a folder with a small file in place of Gowalla's."""
    user, place = np.divmod(np.arange(6100 * 6), 6)
    table = pa.table({"user": user, "item": (7 * user + 5 * place) % 40, "test": place // 5})
    pyarrow.parquet.write_table(table, tmp_path / "gowalla.parquet")
    yield tmp_path
    data.load_log.cache_clear()
    data.load_split.cache_clear()


def test_splits_are_those_of_the_repeated_study():
    log = data.load_log("tiny")
    expected = repeated_strong_generalization(log.users, log.items, heldout=60, repeats=2)
    for seed, other in zip(data.repeated_seeds(2), expected, strict=True):
        split = data.load_split("tiny", seed)
        assert (split.train != other.train).nnz == 0
        assert (split.test.target != other.test.target).nnz == 0


def test_users_have_the_same_number_in_all_splits():
    seeds = data.repeated_seeds(2)
    for on in ("validation", "test"):
        splits = [data.load_split("tiny", seed) for seed in seeds]
        numbers = [users_of(split, on) for split in splits]
        for split, users in zip(splits, numbers, strict=True):
            begin = split.train.shape[0] + (60 if on == "test" else 0)
            assert (split.user_ids[begin : begin + 60] == users).all()
        assert set(numbers[0]) != set(numbers[1])


def test_gowalla_holds_out_whole_users(check_ins, monkeypatch):
    monkeypatch.setenv("SAFECF_DATA", str(check_ins))
    assert data.find("gowalla") == check_ins / "gowalla.parquet"
    split = data.load_split("gowalla")
    assert split.validation.target.shape[0] == split.test.target.shape[0] == 3000
    assert len(np.unique(split.user_ids)) == split.user_ids.size


def test_a_path_comes_first(check_ins, monkeypatch, tmp_path):
    monkeypatch.delenv("SAFECF_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert data.find("gowalla", check_ins) == check_ins / "gowalla.parquet"
    assert data.find("tiny") is None
    with pytest.raises(FileNotFoundError, match="--path"):
        data.find("gowalla", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="unknown data 'gowala': did you mean 'gowalla'"):
        data.find("gowala")


def test_data_are_found_beside_the_checkout(check_ins, monkeypatch):
    monkeypatch.delenv("SAFECF_DATA", raising=False)
    shared = check_ins / "shared" / "data"
    shared.mkdir(parents=True)
    (check_ins / "gowalla.parquet").rename(shared / "gowalla.parquet")
    (check_ins / "project").mkdir()
    monkeypatch.chdir(check_ins / "project")
    assert data.find("gowalla").resolve() == shared / "gowalla.parquet"


def test_a_changed_file_has_another_checksum(check_ins):
    file = check_ins / "gowalla.parquet"
    before = data.checksum(file)
    file.write_bytes(file.read_bytes() + b"x")
    assert data.checksum(file) != before


def test_more_factors_need_more_memory():
    few, many = ({"data": "msd", "options": {"factors": d}} for d in (32, 512))
    assert data.estimate_bytes(few) < data.estimate_bytes(many)
    heavy = {"data": "ml-20m", "model": "EASE", "options": {}}
    assert data.estimate_bytes(heavy) > 16 * 20_108**2
