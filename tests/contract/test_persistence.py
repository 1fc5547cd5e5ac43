"""save, load, pickle and copy: the same model comes back."""

import copy
import io
import pickle

import numpy as np
import pytest

import safecf
from safecf.models import MODELS, Recommender
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only, options_of


def assert_same(model, other, data, snapshot):
    assert type(other) is type(model)
    assert snapshot(other) == snapshot(model)
    assert repr(other) == repr(model)
    users, items = data[:2], data.T.tocsr()[:2]
    answers = [
        (*each.recommend([0, 1], users), *each.similar_items([0, 1])) for each in (model, other)
    ]
    for one, two in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, two)
    if isinstance(model, MatrixFactorization):
        np.testing.assert_array_equal(other.fold_in(users), model.fold_in(users))
    if isinstance(model, ALSModel):
        np.testing.assert_array_equal(
            other.recalculate_item([0, 1], items), model.recalculate_item([0, 1], items)
        )


@pytest.mark.parametrize("given", ["model", "model.safetensors"])
def test_save_and_load(model, data, snapshot, tmp_path, given):
    model.save(str(tmp_path / given))
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    for load in (type(model).load, Recommender.load, safecf.load):
        other = load(tmp_path / given)
        assert_same(model, other, data, snapshot)
    other.fit(data[:9], show_progress=False)
    other.save(tmp_path / given)
    assert safecf.load(tmp_path / given).shape == (9, 15)


@only(MatrixFactorization)
def test_files_hold_what_partial_fits_have_added(model, data, snapshot, tmp_path):
    model.save(tmp_path / "model")
    other = safecf.load(tmp_path / "model")
    assert other.user_factors.flags.writeable
    other.partial_fit_users([0, 40], data[[1, 2]])
    other.save(tmp_path / "model")
    assert_same(other, safecf.load(tmp_path / "model"), data, snapshot)


def test_file_objects(model, data, snapshot, tmp_path):
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    assert_same(model, type(model).load(buffer), data, snapshot)
    with open(tmp_path / "plain", "wb") as file:
        model.save(file)
    assert (tmp_path / "plain").read_bytes() == buffer.getvalue()


UNUSUAL = {
    "regularization": np.float32(2**-10),
    "unobserved_weight": 1,
    "init_std": 0.25,
    "bandwidth": np.inf,
    "kernel": "logistic",
    "quantile_sample": 0.5,
    "beta": np.float32(0.25),
    "anneal_share": 1,
    "dropout": 0,
}


def test_every_option_is_saved(name, make, data, tmp_path):
    options = {option: value for option, value in UNUSUAL.items() if option in options_of(name)}
    assert options
    model = make(**options).fit(data, show_progress=False)
    model.save(tmp_path / "model")
    assert safecf.load(tmp_path / "model").get_params() == model.get_params()


@only(MatrixFactorization)
def test_a_generator_is_saved_as_the_seed_it_gave(make, data, tmp_path):
    model = make(random_state=np.random.default_rng(1)).fit(data, show_progress=False)
    model.save(tmp_path / "model")
    other = safecf.load(tmp_path / "model")
    assert other.random_state == model.seed
    other.fit(data, show_progress=False)
    np.testing.assert_array_equal(other.item_factors, model.item_factors)


def test_a_class_that_load_does_not_know_is_not_saved(model, name, tmp_path):
    model = copy.copy(model)
    model.__class__ = type("Mine", (type(model),), {})
    with pytest.raises(TypeError, match=f"Mine is no model of safecf.*; save a {name}, or pickle"):
        model.save(tmp_path / "model")


def test_a_popularity_that_load_would_refuse_is_not_saved(model, tmp_path):
    model.item_popularity = np.full(15, np.nan, dtype=np.float32)
    with pytest.raises(ValueError, match="item_popularity holds a share that is negative or not"):
        model.save(tmp_path / "model")


def test_another_class_is_refused(model, name, tmp_path):
    model.save(tmp_path / "model")
    for other in MODELS.values():
        if not issubclass(MODELS[name], other):
            with pytest.raises(safecf.FileFormatError, match=f"it holds a {name}, not a"):
                other.load(tmp_path / "model")


@pytest.mark.parametrize(
    "duplicate", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy]
)
def test_pickle_and_copy(make, model, data, snapshot, duplicate):
    model.similar_items(0)
    model.recommend(0, data[0], recalculate_user=True)
    other = duplicate(model)
    assert vars(other).keys().isdisjoint({"_derived", "_changes"})
    assert_same(model, other, data, snapshot)
    held = snapshot(model)
    if isinstance(other, MatrixFactorization):
        other.partial_fit_users([0], data[5])
    other.fit(data[:9], show_progress=False)
    assert snapshot(model) == held
    assert repr(duplicate(make())) == repr(make())
