"""`safecf data`: summaries, and the paper's six files."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import safecf
from safecf import datasets
from tests.cli.conftest import COLUMNS


@pytest.fixture
def ratings(tmp_path, monkeypatch):
    """A file like that of MovieLens-1M, and a split that holds out 5 users of it."""
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in range(1, 61) for item in rng.permutation(40)[:20]]
    lines = [f"{user}::{item}::{rng.integers(3, 6)}::{user}\n" for user, item in pairs]
    (tmp_path / "ratings.dat").write_text("".join(lines))
    small = replace(datasets.DATASETS["ml-1m"], heldout=5)
    monkeypatch.setitem(datasets.DATASETS, "ml-1m", small)
    return tmp_path / "ratings.dat"


def counts(out):
    return [int(line.split()[1].replace(",", "")) for line in out.splitlines()[:3]]


def test_summary_of_a_text_file(done, ratings, monkeypatch):
    options = ("--separator", "::", "--no-header", "--user", 0, "--item", 1)
    assert counts(done("data", "summary", ratings, *options)) == [60, 40, 1200]
    some = counts(done("data", "summary", ratings, *options, "--rating", 2, "--min-rating", 4))
    assert 0 < some[2] < 1200
    monkeypatch.setenv("SAFECF_DATA", str(ratings.parent))
    assert counts(done("data", "summary", "ml-1m")) == some


def test_split_writes_the_papers_files(done, ratings):
    given = ("data", "split", "ml-1m", "--path", ratings, "--out", "some/folder")
    assert "5 validation and 5 test users" in done(*given, "--seed", 7)
    assert os.listdir("some") == ["folder"]
    split = safecf.split.read("some/folder")
    wanted = datasets.paper_split("ml-1m", ratings, seed=7)
    np.testing.assert_array_equal(split.train.toarray(), wanted.train.toarray())
    np.testing.assert_array_equal(split.test.target.toarray(), wanted.test.target.toarray())
    before = Path("some/folder/train.csv").read_text()
    done(*given)
    assert Path("some/folder/train.csv").read_text() != before


def test_commands_take_the_folder_of_a_split(done, ratings):
    done("data", "split", "ml-1m", "--path", ratings, "--out", "folder")
    split = safecf.split.read("folder")
    parts = (split.validation, split.test)
    count = split.train.nnz + sum(part.history.nnz + part.target.nnz for part in parts)
    assert counts(done("data", "summary", "folder"))[2] == count
    given = ("-m", "safer2:factors=4,iterations=2", "-q", "--json")
    assert "read from folder" in str(json.loads(done("evaluate", "folder", *given)))


def test_weights_are_lost_with_a_warning(run, clicks):
    given = (*COLUMNS, "--weight", "stars", "--out", "split", "--heldout", 50)
    code, _, err = run("data", "split", clicks, *given)
    assert (code, "the files hold no weights" in err) == (0, True)
