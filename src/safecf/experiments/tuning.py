"""`tuning`: find the settings of every model on the validation users.

First every setting once, for a few epochs. Then the best of each model again, for longer and from
other starts: what was best by luck is found out, and the number of epochs is chosen. Last the
presets: the mean over those starts decides.
"""

from typing import NamedTuple

from safecf.errors import choose
from safecf.experiments import presets
from safecf.experiments.base import Cell, Experiment, Options, Result, Results, canonical
from safecf.experiments.data import SEED
from safecf.experiments.page import Page, table
from safecf.experiments.searches import SEARCHES, Search, searches
from safecf.experiments.trial import trial
from safecf.models import MODELS
from safecf.tuning import Objective, Trial, best

KEPT, STARTS = 8, 3  # how many settings are repeated, and how often
TRIALS = 64


class Found(NamedTuple):
    """A setting that was repeated: what it is, its epochs, and its scores."""

    options: dict[str, object]
    epochs: int
    value: float
    mean: float
    tail: float


def _cell(search: Search, options: dict[str, object], seed: int, final: bool, data: str) -> Cell:
    epochs = search.final if final else search.epochs
    known = choose("model", search.model, MODELS)().get_params()
    if "iterations" in known:
        options = {**options, "iterations": max(epochs)}
    settings = {
        "data": data,
        "split": SEED,
        "model": search.model,
        "options": options,
        "seed": seed,
        "epochs": list(epochs),
    }
    return Cell(trial, settings)


def plan(options: Options) -> list[tuple[Search, dict[str, object], Cell]]:
    """Return every setting of every search, with its cell."""
    return [
        (search, tried, _cell(search, tried, 0, False, options.data))
        for search in searches(options.data)
        for tried in search.tried(options.trials, options.trials == TRIALS)
    ]


def cells(options: Options) -> list[Cell]:
    """Return the first round."""
    return [cell for *_, cell in plan(options)]


def _best(search: Search, results: dict[str, Result], options: Options) -> list[dict[str, object]]:
    """Return the settings of a search to repeat: the best of the first round, at any epoch."""
    tried = [
        Trial(each, [max(_values(results[canonical(cell.settings)], search.objective))])
        for of, each, cell in plan(options)
        if of == search
    ]
    return [each.options for each in best(tried, KEPT)]


def then(results: Results, options: Options) -> list[Cell]:
    """Return the second round."""
    known = {canonical(each.settings): each for each in results}
    return [
        _cell(search, each, seed, True, options.data)
        for search in searches(options.data)
        for each in _best(search, known, options)
        for seed in _starts(search)
    ]


def _starts(search: Search) -> range:
    """Return the seeds of the second round, other ones than in the first."""
    chance = "random_state" in MODELS[search.model]().get_params()
    return range(1, 1 + STARTS) if chance else range(1)


def repeated(search: Search, results: dict[str, Result], options: Options) -> list[Found]:
    """Return the repeated settings, the best first, each with its best number of epochs."""
    found = []
    for each in _best(search, results, options):
        runs = [
            results[canonical(_cell(search, each, seed, True, options.data).settings)]
            for seed in _starts(search)
        ]
        shared = min(len(run.record["epochs"]) for run in runs)
        trials = [
            Trial({"epochs": epochs}, [_values(run, search.objective)[place] for run in runs])
            for place, epochs in enumerate(runs[0].record["epochs"][:shared])
        ]
        (chosen,) = best(trials)
        place = trials.index(chosen)
        mean, tail = (
            sum(_values(run, Objective(search.objective.metric, (level,)))[place] for run in runs)
            / len(runs)
            for level in (1.0, 0.3)
        )
        epochs = int(chosen.options["epochs"])
        found.append(Found(each, epochs, chosen.value, mean, tail))
    return sorted(found, key=lambda each: -each.value)


def _values(result: Result, objective: Objective) -> list[float]:
    """Return the objective after each of the epochs."""
    return [objective({objective.metric: row}) for row in result.record[objective.metric]]


def _preset(search: Search, found: Found, options: Options) -> presets.Preset:
    chosen = dict(found.options)
    if "iterations" in MODELS[search.model]().get_params():
        chosen["iterations"] = max(found.epochs, 1)
    command = EXPERIMENT.command(Options(options.data, trials=options.trials))
    return presets.Preset(search.name, search.model, chosen, command)


def render(results: Results, options: Options) -> Page:
    """Return the best settings of every search, and put them into `options.presets`, if given."""
    known = {canonical(each.settings): each for each in results}
    blocks, everything = [_explained()], presets.Everything()
    for search in searches(options.data):
        found = repeated(search, known, options)
        preset = _preset(search, found[0], options)
        presets.put(everything, search.which, options.data, preset)
        if options.presets is not None:
            presets.update(options.presets, search.which, options.data, preset)
        lines = [
            [_text(each), str(each.epochs), each.value, each.mean, each.tail] for each in found
        ]
        title = f"**{search.name}**, set `{search.which}`, by the {search.objective}:"
        header = ["options", "epochs", "objective", "R@20", "R@20, tail 0.3"]
        blocks += [title, table(header, lines)]
    blocks += ["The presets:", f"```toml\n{presets.dump(everything)}```"]
    return Page(blocks, _rows(known, options))


def _rows(results: dict[str, Result], options: Options) -> list[dict[str, object]]:
    """Return the first round: every setting, and the objective after each of the epochs."""
    rows = []
    for search, tried, cell in plan(options):
        found = results[canonical(cell.settings)]
        row = {"set": search.which, "model": search.name, "options": canonical(tried)}
        values = _values(found, search.objective)
        for epochs, value in zip(found.record["epochs"], values, strict=True):
            rows.append({**row, "epochs": epochs, "objective": value})
    return rows


def _explained() -> str:
    return (
        "Every setting once on the paper's split, then the "
        f"{KEPT} best of each model for longer and from {STARTS} other starts, all scored for the "
        "validation users; the test users were not looked at. The set `grid` is the paper's way: "
        "its ranges, d = 32, 20 epochs and then 50 (CVaR-MF: 500 and 1,000), by the mean. The set "
        "`tuned` draws at random from wider ranges, with more factors, and chooses the number of "
        "epochs as well, by the mean and the tail together. The CSV file has the first round."
    )


def _text(found: Found) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.options.items())


EXPERIMENT = Experiment(
    "tuning",
    "Settings of all models",
    "the table of hyperparameter ranges, and beyond it",
    cells,
    render,
    then=then,
    data=tuple(SEARCHES),
    trials=TRIALS,
)
