"""Recommendations into files that go on after a break."""

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import IALS, Interactions
from safecf.batch import COMPRESSED, FORMATS, parts_folder
from safecf.models import answers
from tests.batch.problem import DATA, ITEMS, MATRIX, USERS, write


@pytest.mark.parametrize("suffix", [*FORMATS, *COMPRESSED])
def test_a_break_leaves_parts_to_go_on_from(model, tmp_path, monkeypatch, suffix):
    """The same bytes as without a break; finished parts are not computed again."""
    path, own, sizes = tmp_path / f"out{suffix}", type(model).recommend_flagged, []
    write(model, tmp_path / f"whole{suffix}", N=3)

    def recommend_flagged(self, userid, *rest, **options):
        sizes.append(len(userid))
        if len(sizes) == 4:
            raise KeyboardInterrupt("halfway")
        return own(self, userid, *rest, **options)

    monkeypatch.setattr(type(model), "recommend_flagged", recommend_flagged)
    with pytest.raises(KeyboardInterrupt, match="halfway"):
        write(model, path, N=3, resume=True)
    assert not path.exists()
    assert parts_folder(path).is_dir()
    summary = write(model, path, N=3, resume=True)
    assert sizes == [7, 7, 7, 7, 7, 2]
    assert path.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    assert (summary.users, summary.cold_users) == (30, 1)
    assert not parts_folder(path).exists()


def test_parts_go_once_the_file_is_written_without_them(model, tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    with monkeypatch.context() as patch:
        patch.setattr(answers.Answers, "part", lambda self, start, stop: 1 / 0)
        with pytest.raises(ZeroDivisionError, match="division"):
            write(model, path, N=3, resume=True)
    assert parts_folder(path).is_dir()
    write(model, path, N=3)
    assert not parts_folder(path).exists()


def test_a_folder_of_that_name_with_other_files_stays(model, tmp_path):
    mine = parts_folder(tmp_path / "out.csv") / "mine.txt"
    mine.parent.mkdir()
    mine.touch()
    write(model, tmp_path / "out.csv", N=3)
    assert mine.exists()


@pytest.mark.parametrize("other", ["model", "data", "N", "filter_items", "users", "seen"])
def test_parts_of_another_question_are_not_used(model, tmp_path, monkeypatch, other):
    path, own = tmp_path / "out.csv", answers.Answers.part

    def part(self, start, stop):
        if start:
            raise KeyboardInterrupt("halfway")
        return own(self, start, stop)

    with monkeypatch.context() as patch:
        patch.setattr(answers.Answers, "part", part)
        with pytest.raises(KeyboardInterrupt, match="halfway"):
            write(model, path, N=3, resume=True)
    data, options = DATA, {"N": 3}
    if other == "model":
        model = IALS(4, iterations=3, random_state=1).fit(DATA, show_progress=False)
    elif other == "data":
        data = Interactions.from_csr(MATRIX[::-1], USERS, ITEMS)
    else:
        options |= {
            "N": {"N": 4},
            "filter_items": {"filter_items": ITEMS[:2]},
            "users": {"users": USERS[::-1]},
            "seen": {"filter_already_liked_items": False},
        }[other]
    write(model, path, data, **options, resume=True)
    write(model, tmp_path / "whole.csv", data, **options)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()


KILLED = """
import os, sys
from safecf import Interactions, load
from safecf.batch import recommend_to_file
from safecf.models import answers

answers.ROWS, stop_at, own = 7, int(sys.argv[3]), answers.Answers.part

def part(self, start, stop):
    if start == stop_at:
        os.kill(os.getpid(), 9)
    return own(self, start, stop)

answers.Answers.part = part
data = Interactions.from_parquet(sys.argv[1] + "/data.parquet")
model = load(sys.argv[1] + "/model.safetensors")
recommend_to_file(model, sys.argv[2], data, resume=True, show_progress=False)
"""


def test_a_killed_process_leaves_parts_to_go_on_from(tmp_path):
    rows, columns = MATRIX.nonzero()
    table = pa.table({"user": [USERS[row] for row in rows], "item": ITEMS[columns]})
    pa.parquet.write_table(table, tmp_path / "data.parquet")
    data = Interactions.from_parquet(tmp_path / "data.parquet")
    model = IALS(4, iterations=1, random_state=0).fit(data, show_progress=False)
    model.save(tmp_path / "model.safetensors")
    write(model, tmp_path / "whole.csv.gz", data)
    path = tmp_path / "out.csv.gz"
    codes = []
    for stop_at in (14, 21, -1):
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(path), str(stop_at)]
        codes.append(subprocess.run(command, check=False).returncode)
        assert path.exists() == (stop_at == -1)
    assert codes == [-9, -9, 0]
    assert path.read_bytes() == (tmp_path / "whole.csv.gz").read_bytes()
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["data.parquet", "model.safetensors", path.name, "whole.csv.gz"]
    )
