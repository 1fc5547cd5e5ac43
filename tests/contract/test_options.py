"""Options of all models: bad values are refused without a trace, good ones are kept and shown."""

import inspect

import numpy as np
import pytest

from safecf.models import MODELS
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from safecf.models.options import Number, rules
from tests.contract.quick import assert_same, fitted, only, options_of, quick_options

BAD_OPTIONS = {
    "factors": [0, -1, 2.0, "8", True, None, 2**31],
    "iterations": [0, -1, 1.5, None, False],
    "regularization": [-0.1, np.nan, np.inf, "a", None, True, 10**400],
    "ridge_exponent": [np.nan, np.inf, "a", None],
    "unobserved_weight": [-0.1, np.nan, np.inf, "a", None],
    "tail": [0, -0.3, 1.1, np.nan, "a", None, True],
    "normalisation": [-0.1, 1.1, np.nan, "plain", None],
    "ridge_in_risk": [1, 0.0, "auto", None],
    "kernel": ["gauss", "", None, 3],
    "bandwidth": [0, -1, np.nan, "a", None],
    "quantile_steps": [0, -1, 1.0, None, True],
    "quantile_sample": [0, 1.1, np.nan, None],
    "solver": ["exakt", None, 3],
    "block_size": [0, -1, 1.5, None],
    "tolerance": [0, -1e-3, 1, 1.5, np.nan, np.inf, None],
    "init_std": [0, -1, 1e-30, 1e7, np.nan, np.inf, None],
    "optimizer": ["adma", None, 3],
    "step_size": [0, -1, 1e-30, 5e299, np.nan, np.inf, "a", None],
    "batch_size": [0, 1.0, None],
    "beta": [-0.1, np.nan, np.inf, "a", None],
    "anneal_share": [-0.1, 1.1, np.nan, None],
    "dropout": [-0.1, 1, np.nan, None],
    "device": ["gpu", "cuda:", "cuda:x", "", None, 0],
    "random_state": [-1, 1.5, "a", True, 2**63],
    "num_threads": [-1, 1.0, None, True],
    "backend": ["gpu", None, 3],
}


def test_every_option_has_bad_values():
    options = {option for name in MODELS for option in options_of(name)}
    assert options == set(BAD_OPTIONS)


@pytest.mark.parametrize("option", BAD_OPTIONS)
def test_bad_options_are_refused(name, make, model, data, snapshot, option):
    if option not in options_of(name):
        with pytest.raises(TypeError, match=option):
            make(**{option: 1})
        return
    held = snapshot(model)
    for value in BAD_OPTIONS[option]:
        with pytest.raises((TypeError, ValueError), match=option) as caught:
            fitted(make(**{option: value}), data)
        text = str(caught.value)
        assert repr(value) in text
        assert "try " in text or "known are" in text
        setattr(model, option, value)
        with pytest.raises((TypeError, ValueError), match=option):
            fitted(model, data)
    setattr(model, option, held[option])
    assert snapshot(model) == held


def test_the_default_of_the_model_is_advised(name, make, data):
    for option, parameter in inspect.signature(MODELS[name]).parameters.items():
        if isinstance(rules(MODELS[name])[option], Number):
            with pytest.raises(ValueError, match=rf"; try {option}={parameter.default!r}$"):
                fitted(make(**{option: -1}), data)


@only(ALSModel)
def test_near_misses_get_a_hint(make, data):
    with pytest.raises(ValueError, match="did you mean 'numpy'"):
        fitted(make(backend="nunpy"), data)


def test_numpy_numbers_are_numbers(name, make, data):
    numbers = {
        "factors": np.int64(4),
        "regularization": np.float32(0.01),
        "num_threads": np.int8(1),
    }
    options = {key: value for key, value in numbers.items() if key in options_of(name)}
    plain = {key: value.item() for key, value in options.items()}
    assert_same(fitted(make(**options), data), fitted(make(**plain), data))


def test_options_and_their_text(name, make, backend):
    model = make(num_threads=7)
    options = model.get_params()
    assert options.keys() == options_of(name).keys()
    given = quick_options(name, backend) | {"num_threads": 7}
    assert given.items() <= options.items()
    shown = [f"{option}={given[option]!r}" for option in options if option in given]
    assert repr(model) == f"{name}({', '.join(shown)})"
    assert repr(MODELS[name]()) == f"{name}()"
    assert make(num_threads="nonsense").num_threads == "nonsense"


@only(MatrixFactorization)
def test_generators_are_stored_as_they_are(make):
    generator = np.random.default_rng(0)
    assert make(random_state=generator).get_params()["random_state"] is generator
