"""Mult-VAE without torch: models are loaded and answer; only training needs it."""

import copy
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from tests.helpers import refused
from tests.models.saved import DATA, trained


@pytest.fixture
def model():
    return copy.deepcopy(trained("network"))


def test_the_encoder_follows_its_formula(model):
    hidden, hidden_bias, mean, mean_bias = map(np.float64, model.encoder)
    data = DATA[DATA.getnnz(axis=1) > 0]
    weighted = data.multiply(np.arange(1, 9)).tocsr()
    for matrix in (data, weighted, weighted * 1e10):
        dense = matrix.toarray().astype(np.float64)
        inputs = dense / np.linalg.norm(dense, axis=1, keepdims=True)
        expected = np.tanh(inputs @ hidden + hidden_bias) @ mean + mean_bias
        users = model.fold_in(matrix)
        np.testing.assert_allclose(users[:, :-1], expected, atol=1e-5)
        assert (users[:, -1] == 1).all()
    assert not model.fold_in(sp.csr_matrix((2, 8))).any()
    np.testing.assert_array_equal(model.fold_in(data * 7), model.fold_in(data))


def test_training_without_torch_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "safecf.models.vae.trainer", raising=False)
    with refused(ImportError, "not installed; try pip install 'safecf[torch]'", unchanged=model):
        model.fit(DATA, show_progress=False)


SCRIPT = """
import sys
import safecf, safecf.cli
assert "torch" not in sys.modules, "import safecf imports torch"
sys.modules["torch"] = None
model = safecf.load(sys.argv[1])
import numpy, scipy.sparse
history = scipy.sparse.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), shape=(1, 8))
print(*model.recommend(0, history, N=3, recalculate_user=True)[0], *model.similar_items(1, N=2)[0])
"""


def test_a_saved_model_answers_without_torch(model, tmp_path):
    model.save(tmp_path / "model")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    history = sp.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), shape=(1, 8))
    ids, _ = model.recommend(0, history, N=3, recalculate_user=True)
    assert printed.split() == [*map(str, ids), *map(str, model.similar_items(1, N=2)[0])]
