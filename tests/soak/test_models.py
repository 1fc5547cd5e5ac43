"""A few cases of every attack on models: settings, determinism, numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from soak import determinism, numbers, settings
from soak.__main__ import attacks
from soak.attack import try_cases

CASES = {
    settings.settings: 200,
    determinism.threads: 10,
    determinism.copies: 8,
    determinism.forks: 3,
    determinism.spawns: 1,
    determinism.environments: 1,
    determinism.concurrency: 4,
    determinism.orders: 10,
    determinism.reordered: 10,
    numbers.half_steps: 400,
    numbers.scores: 200,
    numbers.objectives: 30,
}
NEED_TORCH = {settings.settings_of_mult_vae: 6, determinism.mult_vae: 3}


@pytest.mark.parametrize("attack", CASES, ids=lambda each: each.name)
def test_the_promise_is_kept(attack):
    result = try_cases(attack, range(CASES[attack]))
    assert not result.failures, next(iter(result.failures.values()))
    assert result.cases == CASES[attack]


@pytest.mark.parametrize("attack", NEED_TORCH, ids=lambda each: each.name)
def test_the_promise_is_kept_with_torch(attack):
    """In this process: torch hangs in one that is forked after it has used threads."""
    pytest.importorskip("torch", reason="MultVAE needs torch")
    for number in range(NEED_TORCH[attack]):
        assert attack.outcome(number)


def test_every_attack_on_models_is_tried():
    modules = {module.__name__ for module in (determinism, numbers, settings)}
    found = {each for each in attacks().values() if each.case.__module__ in modules}
    assert found == {*CASES, *NEED_TORCH}


def test_answers_of_another_model_are_told_apart():
    expected = determinism.trained_answers(1, random_state=0)
    with pytest.raises(AssertionError, match=r"another seed: .*'factors'.* differ"):
        determinism.compare(
            expected, determinism.trained_answers(1, random_state=1), "another seed"
        )


@pytest.mark.parametrize(("weight", "what"), [(0, "zero"), (0.1, "equal")])
def test_weights_of_items_that_say_nothing_are_told(weight, what):
    data = sp.csr_matrix([[1.0, 1, 0], [0, 1, 1]])
    model = safecf.EASE().fit(data, show_progress=False)
    settings.check(model, data, warned=False)
    model.item_weights = np.full((3, 3), weight, dtype=np.float32)
    with pytest.raises(AssertionError, match=f"all weights are {what}, and nothing tells"):
        settings.check(model, data, warned=False)


def test_useless_models_are_told(recwarn):
    model, data = determinism.random_problem(7)
    assert determinism.is_fitted(model, data)
    settings.check(model, data, warned=False)
    found = model.item_factors
    model.item_factors = np.ones_like(found)
    with pytest.raises(AssertionError, match="all scores are equal"):
        settings.check(model, data, warned=False)
    model.item_factors = 1e3 * found
    with pytest.raises(AssertionError, match="are worse than none"):
        settings.check(model, data, warned=False)
    model.item_factors = found * 0
    with pytest.raises(AssertionError, match="all scores are zero"):
        settings.check(model, data, warned=False)
    model.item_factors = model.item_factors * float("nan")
    with pytest.raises(AssertionError, match="item_factors is not finite"):
        settings.check(model, data, warned=True)
