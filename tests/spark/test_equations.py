"""Normal equations of hot rows and big items: sums over pairs, and solutions."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from safecf.als.loss import Loss, Ridge
from safecf.als.risk import Mean
from safecf.als.solvers import Exact
from safecf.spark import chunks, half_step, tasks

USERS, D = 10, 4
# Of block 3 of the items: row, users, confidences. Item 2 is hot here, items 0 and 5 are big.
PAIRS = {
    "hot": {2: ([1, 4, 9], [1, 2, 1])},
    "big": {0: (list(range(USERS)), [1] * USERS), 5: ([7], [3])},
}


def state(rng):
    """Return the arrays of a block of users that has seen those items."""
    arrays = {
        "factors": rng.normal(size=(USERS, D)),
        "mass": rng.integers(1, 5, USERS),
        "weights": rng.random(USERS),
    }
    entries = list(chunks.named(0, 0, arrays))
    for kind, rows in PAIRS.items():
        users, confidence = (np.concatenate(each) for each in zip(*rows.values(), strict=True))
        counts = [len(each) for each, _ in rows.values()]
        values = [np.array(list(rows)), np.array(counts), users, confidence]
        names = [f"{kind}_{name}" for name in ("rows", "counts", "columns", "confidence")]
        entries += chunks.named(0, 3, dict(zip(names, values, strict=True)))
    return chunks.Arrays(pa.Table.from_batches(chunks.pack(entries)))


@pytest.mark.parametrize("at_once", [3, 10**6])
def test_normal_equations(at_once, monkeypatch):
    """sum p x x', sum p x and sum a c, with p = w a c, however many pairs are taken at once."""
    monkeypatch.setattr(tasks, "GATHERED", at_once)
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0].astype(np.float32)
    loss, block = Loss(0.1), state(rng)
    places = np.array([0, USERS]), np.array([0, 1])
    setting = tasks.Setting(D, loss, Ridge(0.1), Mean(), USERS, 9, places, places, 0, 0.1)
    eigenbasis = tasks.Eigenbasis(np.ones(D, np.float32), basis, Exact())
    entries = chunks.pack(tasks.Send(setting, 0, eigenbasis, None)(0, block))
    sent = chunks.Arrays(pa.Table.from_batches(entries))
    rows = {row: pairs for kind in PAIRS.values() for row, pairs in kind.items()}
    assert sent.of("hot").tolist() == list(rows)
    x = block.of("factors").reshape(USERS, D) @ basis
    pair_weight = loss.pair_weight(block.of("mass"))
    for place, (users, confidence) in enumerate(rows.values()):
        a = pair_weight[users] * confidence
        p = a * block.of("weights")[users]
        triangle = sent.of("hot_gram").reshape(len(rows), -1)[place]
        expected = (x[users].T * p) @ x[users]
        np.testing.assert_allclose(tasks.whole_matrix(triangle), expected, rtol=1e-5, atol=1e-6)
        right = sent.of("hot_right").reshape(len(rows), D)[place]
        np.testing.assert_allclose(right, p @ x[users], rtol=1e-5, atol=1e-6)
        assert sent.of("hot_mass")[place] == pytest.approx(a.sum())


def test_systems_are_solved_on_any_scale():
    rng = np.random.default_rng(1)
    x, right = rng.normal(size=(20, D)), rng.normal(size=D)
    for scale in (1e-12, 1, 1e12):
        system = scale * (x.T @ x)
        found = half_step._solved(system, right)
        np.testing.assert_allclose(system @ found, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "system",
    [
        np.ones((3, 3)),
        np.zeros((3, 3)),
        np.diag([1, 1, -1.0]),
        np.diag([1, 1, np.inf]),
        np.outer([1, 2, 3], [1, 2, 3]) + 1e-9 * np.eye(3),
    ],
    ids=["collinear", "nothing", "indefinite", "beyond float32", "collinear in float32"],
)
def test_systems_that_cannot_be_solved(system):
    assert half_step._solved(system, np.ones(3)) is None
