"""Mult-VAE without torch: models are loaded, ask for nothing and answer; only training needs it."""

import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import FileFormatError, MultVAE
from safecf.models.vae.encoder import Encoder
from safecf.models.vae.epochs import VAEEpoch
from tests.models.runs import held
from tests.models.saved import put_together, saved, taken_apart

USERS, ITEMS, FACTORS = 6, 9, 4
DATA = sp.csr_matrix(np.random.default_rng(1).random((USERS, ITEMS)) < 0.5, dtype=np.float32)


def by_hand():
    """Return a model as training leaves it, with random weights."""
    rng = np.random.default_rng(0)
    shapes = Encoder.shapes(ITEMS, FACTORS)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in shapes.values()]
    model = MultVAE(FACTORS, random_state=0)
    model.encoder, model.shape = Encoder(*weights), DATA.shape
    model.seed, model.user_ids, model.item_ids = 0, None, None
    model.item_factors = rng.normal(size=(ITEMS, FACTORS)).astype(np.float32)
    model.user_factors = np.zeros((USERS, FACTORS), dtype=np.float32)
    model.user_factors[:] = model.fold_in(DATA)
    model.item_popularity = rng.random(ITEMS, dtype=np.float32)
    model.history = [
        VAEEpoch(1, 3.5, 3.0, 5.0, 0.1, seconds={"training": 0.25}),
        VAEEpoch(2, 2.5, 2.0, 2.5, 0.2, score=0.5, seconds={"training": 0.25, "validation": 1.0}),
    ]
    return model


GOOD = saved(by_hand())


def shown(model):
    return {
        key: [*map(bytes, value)] if key == "encoder" else value
        for key, value in held(model).items()
    }


def test_the_encoder_follows_its_formula():
    model = by_hand()
    hidden, hidden_bias, mean, mean_bias = map(np.float64, model.encoder)
    weighted = DATA.multiply(np.arange(1, ITEMS + 1)).tocsr()
    for matrix in (DATA, weighted, weighted * 1e10):
        dense = matrix.toarray().astype(np.float64)
        inputs = dense / np.linalg.norm(dense, axis=1, keepdims=True)
        expected = np.tanh(inputs @ hidden + hidden_bias) @ mean + mean_bias
        users = model.fold_in(matrix)
        np.testing.assert_allclose(users[:, :-1], expected, atol=1e-5)
        assert (users[:, -1] == 1).all()
    assert not model.fold_in(sp.csr_matrix((2, ITEMS))).any()
    np.testing.assert_array_equal(model.fold_in(DATA * 7), model.fold_in(DATA))


def test_items_cannot_be_folded_in():
    model, audience = by_hand(), DATA.T.tocsr()[0]
    for ask in (
        lambda: model.recalculate_item(0, audience),
        lambda: model.partial_fit_items([0], audience),
        lambda: model.similar_items(0, recalculate_item=True, item_users=audience),
    ):
        with pytest.raises(NotImplementedError, match=r"cannot compute an item .* fit again"):
            ask()


def test_training_without_torch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "safecf.models.vae.trainer", raising=False)
    model = by_hand()
    state = shown(model)
    with pytest.raises(ImportError, match=r"not installed; try pip install 'safecf\[torch\]'"):
        model.fit(DATA, show_progress=False)
    assert shown(model) == state


SCRIPT = """
import sys
import safecf, safecf.cli
assert "torch" not in sys.modules, "import safecf imports torch"
sys.modules["torch"] = None
model = safecf.load(sys.argv[1])
import numpy, scipy.sparse
history = scipy.sparse.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), shape=(1, 9))
print(*model.recommend(0, history, N=3, recalculate_user=True)[0], *model.similar_items(1, N=2)[0])
"""


def test_a_saved_model_answers_without_torch(tmp_path):
    model = by_hand()
    model.save(tmp_path / "model")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    history = sp.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), shape=(1, ITEMS))
    ids, _ = model.recommend(0, history, N=3, recalculate_user=True)
    assert printed.split() == [*map(str, ids), *map(str, model.similar_items(1, N=2)[0])]


def test_files_hold_everything():
    other = safecf.load(io.BytesIO(GOOD))
    assert shown(other) == shown(by_hand())
    assert other.history[1].seconds == by_hand().history[1].seconds
    other.partial_fit_users([8], DATA[1])
    again = safecf.load(io.BytesIO(saved(other)))
    assert again.user_factors.shape == (9, FACTORS)
    other.user_factors[0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        saved(other)


def changed(arrays=None, history=None, **fitted):
    whole, header = taken_apart(GOOD)
    fitted = header["fitted"] | fitted
    if history is not None:
        fitted["history"][0] |= history
    return put_together(whole | (arrays or {}), header | {"fitted": fitted})


def floats(*shape):
    return np.zeros(shape, dtype=np.float32)


HOSTILE = {
    "seed": ({"seed": -1}, "contradict"),
    "shape": ({"shape": [6]}, "'shape'"),
    "more users": ({"shape": [7, 9]}, "contradict"),
    "more items": ({"shape": [6, 10]}, "'item_factors'"),
    "history": ({"history": {"kl": "low"}}, "'kl' is 'low'"),
    "score": ({"history": {"score": "good"}}, "'score' is 'good'"),
    "seconds": ({"history": {"seconds": {"training": None}}}, "'training' is None"),
    "one factor": (
        {"arrays": {"item_factors": floats(9, 1), "user_factors": floats(6, 1)}},
        "contradict",
    ),
    "other factors": ({"arrays": {"item_factors": floats(9, 5)}}, "'user_factors'"),
    "hidden": ({"arrays": {"encoder.hidden": floats(8, 4)}}, "'encoder.hidden'"),
    "mean": ({"arrays": {"encoder.mean": floats(4, 4)}}, "'encoder.mean'"),
    "bias": ({"arrays": {"encoder.mean_bias": floats(3, 1)}}, "'encoder.mean_bias'"),
    "doubles": ({"arrays": {"encoder.hidden_bias": np.zeros(4)}}, "float64"),
    "not finite": ({"arrays": {"encoder.hidden": floats(9, 4) + np.inf}}, "not finite"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case):
    parts, message = HOSTILE[case]
    with pytest.raises(FileFormatError, match=message):
        safecf.load(io.BytesIO(changed(**parts)))


def test_missing_arrays():
    arrays, header = taken_apart(GOOD)
    for name in arrays.keys() - {"item_popularity"}:  # which version 0.1 did not have
        rest = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(FileFormatError, match="missing"):
            safecf.load(io.BytesIO(put_together(rest, header)))
