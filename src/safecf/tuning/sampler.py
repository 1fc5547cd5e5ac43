"""What Optuna does for tuning: it proposes options, and ends trials that are hopeless.

Both are functions of the finished trials and a seed, so that a search that was interrupted goes on
as if it had not been.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from safecf.checks import check_integer
from safecf.tuning.space import Space, check_space

STARTUP = 10  # trials at random, before TPE proposes
UNPRUNED = 5  # complete trials before the first one may be pruned

Tried = tuple[Mapping[str, Any], Sequence[float]]  # options, and the values to maximise
Curve = Mapping[int, float]  # by epoch, what is to be maximised


def load_optuna() -> Any:
    """Return the module optuna; raise if it is not installed."""
    try:
        import optuna  # noqa: PLC0415 - it is optional
    except ModuleNotFoundError as problem:
        if problem.name != "optuna":
            raise
        raise ImportError(
            "tuning needs Optuna, which is not installed; try pip install 'safecf[tune]'"
        ) from None
    return optuna


@contextmanager
def quiet() -> Iterator[Any]:
    """Give the module optuna, whose log is silent meanwhile."""
    optuna = load_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield optuna
    finally:
        optuna.logging.set_verbosity(before)


def suggest(
    space: Space, tried: Sequence[Tried], count: int, seed: int | Sequence[int]
) -> list[dict[str, Any]]:
    """Return options to try next: at random, and by TPE once enough have been tried.

    They are proposed one after the other, before any of them is scored; TPE counts those as bad
    (constant liar), so that they differ. Trials with options outside of the space are left out. A
    longer list begins with the shorter one of the same seed.

    Reference: Watanabe, Tree-Structured Parzen Estimator, arXiv:2304.11127.

    >>> suggest({"tail": Uniform(0.1, 0.5)}, [({"tail": 0.3}, [0.12])], count=2, seed=0)
    """
    check_space(space)
    check_integer("count", count, 0, 1)
    with quiet() as optuna:
        state = int(np.random.SeedSequence(seed).generate_state(1)[0])
        sampler = optuna.samplers.TPESampler(
            seed=state, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
        )
        goals = ["maximize"] * (len(tried[0][1]) if tried else 1)
        study = optuna.create_study(directions=goals, sampler=sampler)
        distributions = {name: each.distribution() for name, each in space.items()}
        for options, values in tried:
            if all(each.contains(options.get(name)) for name, each in space.items()):
                params = {name: options[name] for name in space}
                study.add_trial(
                    optuna.create_trial(params=params, distributions=distributions, values=values)
                )
        asked = [study.ask(distributions).params for _ in range(count)]
    return [{name: each.rounded(params[name]) for name, each in space.items()} for params in asked]


def median_rule(complete: Sequence[Curve], warmup: int) -> Callable[[Curve], bool]:
    """Return a rule that says whether a trial, given its curve so far, is hopeless.

    It is if its best value so far is below the median of the `complete` trials at the same epoch;
    never before the epoch `warmup`, nor with fewer than `UNPRUNED` complete trials.
    """
    with quiet() as optuna:
        study = optuna.create_study(direction="maximize")
        for curve in complete:
            last = curve[max(curve)]
            study.add_trial(optuna.create_trial(value=last, intermediate_values=dict(curve)))
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED, n_warmup_steps=warmup)

    def is_hopeless(curve: Curve) -> bool:
        running = optuna.trial.TrialState.RUNNING
        trial = optuna.create_trial(state=running, intermediate_values=dict(curve))
        return bool(pruner.prune(study, trial))

    return is_hopeless
