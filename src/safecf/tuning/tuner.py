"""`tune`: find options on the validation users, and compare the best models on the test users."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from safecf.checks import check_integer, check_list, check_type
from safecf.data.matrices.interactions import Interactions
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.defaults import CUTOFFS, LEVEL, METRIC, TAILS
from safecf.errors import choose, shown
from safecf.evaluation import RANK_METRICS, Evaluation, evaluate, parse_metric
from safecf.models.model import MODELS
from safecf.models.recommender import Recommender
from safecf.tuning.budget import Budget
from safecf.tuning.objective import Objective
from safecf.tuning.result import Tuning
from safecf.tuning.sampler import load_optuna
from safecf.tuning.search import PICKS, Search, searched_ranges
from safecf.tuning.space import Range
from safecf.tuning.storage import Study, fingerprint, study_path
from safecf.tuning.trials import Task, Trial

TRIALS = 50  # if no budget is given
FREE_OPTIONS = {"num_threads"}  # on which the results of trials do not depend

Model = Recommender | type[Recommender] | str
Given = Mapping[str, Range | None]


class TuningInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search; its text says what the best trials so far are."""


def tune(
    model: Model,
    data: Split | Interactions,
    *,
    metric: str = METRIC,
    objective: str = "both",
    level: float = LEVEL,
    trials: int | None = None,
    minutes: float | None = None,
    space: Given | None = None,
    study: str | os.PathLike[str] | None = None,
    against: Sequence[Model | tuple[Model, Given]] = (),
    pick: str | int = "objective",
    seed: int = 0,
    show_progress: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> Tuning:
    """Search for the options of a model on the validation users; needs `safecf[tune]`.

    Trial 0 are the model's defaults. The others are proposed by Optuna, at random first and then
    by TPE. Every trial is scored on the validation users about ten times while it is trained: its
    best epoch becomes its `iterations`, and it ends early if it is hopeless (`median_rule`). The
    best model is then fitted again on the same training data, and only the final models are
    evaluated on the test users. The same arguments give the same trials, also after a kill.

    Parameters
    ----------
    model
        A model, its class or the name of its class. Options that are not the defaults stay fixed.
    data
        A `Split` with validation and test users; or an `Interactions`, of whose users 10 % and
        10 % are held out for these.
    metric
        A metric of `evaluate`.
    objective
        "mean" of the metric over all users, its "tail", that is the mean over the worst-off share
        `level`, or "both": then TPE looks for the front on which one can only be raised by
        lowering the other.
    level
        The share of worst-off users.
    trials, minutes
        The budget of each model, including what a study has already; 50 trials by default.
    space
        Ranges by option, such as `{"bandwidth": LogUniform(0.05, 0.5)}`, which replace the
        default ones; None leaves an option as it is. See `safecf.tuning.space.DEFAULT_RANGES`.
    study
        An SQLite file. Started again with the same arguments, the search goes on from there.
    against
        Other models to be tuned in the same way, with the same budget: models, or pairs of a model
        and its `space`.
    pick
        Which trial is taken: the best by the "objective", which for both is the largest
        mean relative gain over the defaults (`Objective.gain`); the one with the best "mean" or
        "tail"; or the trial of a number.
    seed
        Of the proposals, and of models without a `random_state`.
    show_progress
        Whether to show progress bars on stderr.
    settings
        Names and values to store with the evaluations.

    Examples
    --------
    >>> tuning = tune(SAFER2(factors=64), split, trials=50, against=[IALS(factors=64)])
    >>> tuning.best_options, tuning.best_model.recommend(7, user_items[7])
    >>> report(tuning.evaluations, "report.html", tuning=tuning)
    """
    load_optuna()
    goal = Objective(metric, objective, level)
    _check_metric(metric)
    check_integer("seed", seed, 0, 0)
    check_type("show_progress", show_progress, (bool, np.bool_), "give True or False")
    check_type("settings", settings, (Mapping, type(None)), "give names and values, or None")
    budget = Budget(TRIALS if trials is None and minutes is None else trials, minutes)
    _check_pick(pick, budget)
    split = data if isinstance(data, Split) else _split(data)
    task = Task(split, goal)
    path = study_path(study)
    pairs = [_with_space(each) for each in check_list("against", against, "give a list of models")]
    pairs.insert(0, _with_space((model, {} if space is None else space)))
    wanted = [(_made(each, seed), given) for each, given in pairs]
    for each, given in wanted:
        searched_ranges(each, given)  # raises before any work if a range makes no sense
    source = fingerprint(split)
    searches: list[Search] = []
    for each, given in wanted:
        name = _new_name(type(each).__name__, searches)
        facts = _study_settings(each, given, goal, seed, source)
        kept = Study(path, name, facts, goal)
        searches.append(Search(name, each, task, given, seed, kept, budget))
    try:
        for search in searches:
            search.run(show_progress=show_progress)
        return _finish(searches, pick, source, settings or {}, show_progress)
    except KeyboardInterrupt:
        told = "\n".join(search.summary() for search in searches if search.trials)
        kept_in = "" if path is None else f"\n{path} has all finished trials: start again to go on"
        raise TuningInterrupted((told or "no trial is finished") + kept_in) from None


def _finish(
    searches: list[Search],
    pick: str | int,
    source: str,
    settings: Mapping[str, Any],
    show_progress: bool,
) -> Tuning:
    """Fit the best models, and evaluate them and the first model's defaults on the test users."""
    first = searches[0]
    picked = [search.pick(_pick_of(search, searches, pick)) for search in searches]
    models = [search.make(trial) for search, trial in zip(searches, picked, strict=True)]
    named = {search.tuned_name: model for search, model in zip(searches, models, strict=True)}
    # The first one is what the others are compared with: a tuned baseline if there is one.
    best = named.pop(first.tuned_name)
    named |= {f"{first.name} (defaults)": first.make_default(), first.tuned_name: best}
    evaluations = []
    for name, model in named.items():
        model.fit(first.task.training, show_progress=show_progress)
        evaluations.append(_evaluated(model, first.task, name, settings))
    for search, trial, model in zip(searches, picked, models, strict=True):
        model.provenance = _provenance(search, trial, source)
    return Tuning(searches, pick, picked, models, evaluations)


def _evaluated(
    model: Recommender, task: Task, name: str, settings: Mapping[str, Any]
) -> Evaluation:
    _, cutoff = parse_metric(task.objective.metric)
    cutoffs = {*CUTOFFS, cutoff or CUTOFFS[0]}
    tails = {*TAILS, task.objective.level}
    return evaluate(model, task.split, sorted(cutoffs), sorted(tails), name=name, settings=settings)


def _provenance(search: Search, trial: Trial, source: str) -> dict[str, Any]:
    """Say how the options of a model were found."""
    objective, scores = search.task.objective, trial.scores or search.default
    return {
        "tuned by": "safecf.tune",
        "study": None if search.study.path is None else str(search.study.path),
        "trial": trial.number,
        "trials": len(search.trials),
        "seed": search.seed,
        "ranges": {name: str(each) for name, each in search.space.items()},
        "objective": objective.kind,
        "metric": objective.metric,
        "level": objective.level,
        "validation": scores._asdict(),
        "data": source,
    }


def _pick_of(search: Search, searches: list[Search], pick: str | int) -> str | int:
    """Return how a trial is picked: by its number only for the first model."""
    return pick if search is searches[0] or isinstance(pick, str) else "objective"


def _study_settings(
    model: Recommender, given: Given, objective: Objective, seed: int, source: str
) -> dict[str, Any]:
    """Return everything that the trials of a study depend on, but for the ranges of defaults."""
    options = {name: str(value) for name, value in model.get_params().items()}
    ranges = {f"range of {name}": str(each) for name, each in given.items()}
    return {
        "model": type(model).__name__,
        **{name: text for name, text in options.items() if name not in FREE_OPTIONS},
        **{name: text for name, text in ranges.items() if text != "None"},
        "searched options": ", ".join(searched_ranges(model, given)),
        "metric": objective.metric,
        "objective": objective.kind,
        "share of worst-off users": objective.level,
        "seed of the search": seed,
        "data": source,
    }


def _made(model: Model, seed: int) -> Recommender:
    """Return an unfitted copy of a model, with a seed if it has none."""
    if isinstance(model, str):
        model = choose("model", model, MODELS)
    found = model() if isinstance(model, type) else model
    if not isinstance(found, Recommender):
        raise TypeError(f"{shown(model)} cannot be tuned; give a model of safecf, such as SAFER2()")
    options = found.get_params()
    if "random_state" in options and options["random_state"] is None:
        options["random_state"] = seed
    if not isinstance(options.get("random_state", 0), int | np.integer):
        raise TypeError("random_state has to be an integer in tuning; try random_state=0")
    return type(found)(**options)


def _with_space(given: Any) -> tuple[Model, Given]:
    """Return a model and its ranges; raise if they are not a mapping."""
    if not isinstance(given, tuple):
        return given, {}
    if len(given) != 2:
        raise TypeError(f"{shown(given)} is no pair of a model and its space; give (model, space)")
    check_type("space", given[1], Mapping, "give ranges by option, as in {'tail': Uniform(0.1, 1)}")
    return given


def _new_name(name: str, searches: list[Search]) -> str:
    number = 1 + sum(each.name.partition(" #")[0] == name for each in searches)
    return name if number == 1 else f"{name} #{number}"


def _check_pick(pick: str | int, budget: Budget) -> None:
    if isinstance(pick, str):
        choose("pick", pick, dict.fromkeys(PICKS))
        return
    check_integer("pick", pick, 0, 0)
    if budget.trials is not None and pick >= budget.trials:
        raise ValueError(f"pick={pick} is no trial; give a number from 0 to {budget.trials - 1}")


def _check_metric(metric: str) -> None:
    name, cutoff = parse_metric(metric)
    if cutoff is None and name not in RANK_METRICS:
        raise ValueError(f"metric={shown(metric)} has no cutoff; try metric='{name}@20'")


def _split(data: Any) -> Split:
    """Hold out 10 % of the users for validation, and as many for the test."""
    if not isinstance(data, Interactions):
        raise TypeError(f"data is a {type(data).__name__}; give a Split or an Interactions")
    pairs = data.users.to_scipy().tocoo()
    users, items = (np.arange(size) for size in pairs.shape)
    log = Log(pairs.row, pairs.col, users, items, weights=pairs.data)
    made = log.strong_generalization(weighted=True)
    known: dict[str, Any] = {}
    if data.user_ids is not None:
        known["user_ids"] = data.user_ids[made.user_ids]
    if data.item_ids is not None:
        known["item_ids"] = data.item_ids[made.item_ids]
    return replace(made, **known)
