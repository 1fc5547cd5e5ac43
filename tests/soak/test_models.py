"""A few cases of every attack on models: settings, determinism, numbers."""

import pytest

from soak import determinism, numbers, settings
from soak.attack import try_cases

CASES = {
    settings.settings: 60,
    determinism.threads: 6,
    determinism.copies: 4,
    determinism.forks: 3,
    determinism.environments: 1,
    determinism.concurrency: 4,
    determinism.orders: 10,
    determinism.reordered: 10,
    numbers.half_steps: 200,
    numbers.scores: 200,
    numbers.objectives: 15,
}
UNBOUNDED = pytest.mark.xfail(strict=False, reason="options at the ends of their ranges")


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(each, id=each.name, marks=UNBOUNDED if each is settings.settings else ())
        for each in CASES
    ],
)
def test_the_promise_is_kept(attack):
    result = try_cases(attack, range(CASES[attack]))
    assert not result.failures, next(iter(result.failures.values()))
    assert result.cases == CASES[attack]


def test_settings_of_mult_vae():
    pytest.importorskip("torch", reason="MultVAE needs torch")
    result = try_cases(settings.settings_of_mult_vae, range(4))
    assert not result.failures, next(iter(result.failures.values()))


def test_answers_of_another_model_are_told_apart():
    expected = determinism.trained_answers(1, random_state=0)
    with pytest.raises(AssertionError, match=r"another seed: .*'factors'.* differ"):
        determinism.compare(
            expected, determinism.trained_answers(1, random_state=1), "another seed"
        )


def test_useless_models_are_told(recwarn):
    model, data = determinism.random_problem(1)
    assert determinism.is_fitted(model, data)
    settings.check(model, data, warned=False)
    model.item_factors = model.item_factors * 0
    with pytest.raises(AssertionError, match="all scores are zero"):
        settings.check(model, data, warned=False)
    model.item_factors = model.item_factors * float("nan")
    with pytest.raises(AssertionError, match="item_factors is not finite"):
        settings.check(model, data, warned=True)
