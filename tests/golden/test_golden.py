"""What may not change is as it is stored; `python -m tests.golden` stores what was meant to change.

Defaults, answers, exchanges with the service, texts of the report, files of earlier versions.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import SAFER2, Interactions
from safecf.models import MODELS
from tests.golden import records, today

V0_1 = Path(__file__).parents[1] / "models" / "v0_1"
NEEDS = {"MultVAE": "torch", "http.json": "fastapi", "study.sqlite.gz": "optuna"}


def needs(name):
    if name.partition(".safetensors")[0] in NEEDS:
        pytest.importorskip(NEEDS[name.partition(".safetensors")[0]])


def as_stored(found, known, where):
    lines = records.differences(found, known, where)
    shown = [line[:300] for line in lines[:20]]
    told = [f"{len(lines)} differences; if all are meant: python -m tests.golden", *shown]
    assert not lines, "\n".join(told)


@pytest.mark.parametrize("name", ["auto.json", "http.json", "report.txt"])
def test_records(name):
    needs(name)
    as_stored(records.TODAY[name](), records.stored(name), name)


@pytest.mark.parametrize("kind", records.stored("defaults.json"))
def test_defaults(kind):
    found, known = today.defaults(), records.stored("defaults.json")
    assert {*found} == {*known}
    as_stored(found[kind], known[kind], kind)


@pytest.mark.parametrize("name", MODELS)
def test_answers(name):
    needs(name)
    found, known = today.answers(today.fitted(name)), records.stored("answers.json")[name]
    as_stored(found, known, name)


@pytest.mark.parametrize("file", records.FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_files_of_earlier_versions(file):
    needs(file.name)
    known = json.loads((file.parent / "answers.json").read_text())[file.name]
    as_stored(today.read_file(file), known, file.name)


# Version 0.1


def first_data():
    rng = np.random.default_rng(3)
    likes = rng.random((12, 8)) < 0.4
    likes[likes.sum(axis=1) == 0, 0] = True
    matrix = sp.csr_matrix(likes * rng.choice([1.0, 2.0], likes.shape), dtype=np.float32)
    return Interactions.from_csr(matrix, [f"user {user}" for user in range(12)], range(100, 108))


def first_answers(name):
    return json.loads((V0_1 / "expected.json").read_text())[name]


@pytest.mark.parametrize("file", sorted(V0_1.glob("[A-Z]*")), ids=lambda file: file.stem)
def test_models_of_version_0_1(file):
    known, data = first_answers(file.stem), first_data()
    model = safecf.load(file)
    assert type(model).__name__ == file.stem
    ids, scores = model.recommend(np.arange(12), data.to_csr(), N=3)
    np.testing.assert_array_equal(ids, known["ids"])
    np.testing.assert_allclose(scores, known["scores"], atol=2e-4)
    frame = model.recommend_frame(["user 3"], N=2, user_items=data)
    assert frame["item"].to_pylist() == [100 + item for item in known["ids"][3][:2]]


def test_groups_and_history_of_version_0_1():
    model = safecf.load(V0_1 / "SAFER2")
    assert set(model.group_weights) == {"a", "b", "c"}
    assert [record.epoch for record in model.history] == [1, 2, 3]
    assert model.history[-1].seconds["quantile"] > 0


def test_a_checkpoint_of_version_0_1():
    """Rows are solved up to a tolerance: up to 0.03 of a score is open on so little data."""
    model = SAFER2(3, bandwidth=0.3, random_state=0, iterations=4, ridge_in_risk=False)
    model.regularization = model.unobserved_weight = 0.004  # the defaults of version 0.1
    model.fit(first_data(), show_progress=False, resume=V0_1 / "checkpoint")
    assert [record.epoch for record in model.history] == [1, 2, 3, 4]
    scores = model.user_factors @ model.item_factors.T
    np.testing.assert_allclose(scores, first_answers("checkpoint")["scores"], atol=0.05)
