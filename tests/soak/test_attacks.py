"""Every attack but those on models, with a few cases; `python -m soak` runs thousands."""

import pytest

from soak import determinism, numbers, settings
from soak.__main__ import attacks
from soak.attack import try_cases

# attacks that start processes take seconds per case
FEW = {
    "killed-training": 2,
    "interrupted-training": 2,
    "training-on-a-full-disk": 2,
    "interrupted-commands": 2,
    "commands-that-nobody-hears": 2,
    "commands-on-a-full-disk": 2,
    "bombs": 4,
    "damaged-studies": 10,
    "parquet-bombs": 3,
    "read-from-odd-places": 10,
    "write-to-odd-places": 40,
}
# those on models are in test_models
ELSEWHERE = [settings, determinism, numbers]


def is_here(attack):
    return attack.case.__module__ not in [module.__name__ for module in ELSEWHERE]


@pytest.mark.parametrize("name", sorted(name for name, each in attacks().items() if is_here(each)))
def test_a_promise_survives_a_few_cases(name):
    result = try_cases(attacks()[name], range(FEW.get(name, 100)), jobs=1)
    assert not result.failures, "\n".join(result.failures.values())[-2000:]
    assert result.cases
