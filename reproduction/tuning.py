"""`tuning`: find the settings of every model on the validation users.

First every setting once, for a few epochs, in rounds: the paper's grid, or random ones and then
some near the best. Then the best of each model again, for longer, from other starts and with other
numbers of factors: what was best by luck is found out, and the number of epochs is chosen. Last the
presets: the mean over those starts decides.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from reproduction import presets
from reproduction.aggregate import heading
from reproduction.base import Cell, Experiment, Options, Result, Results, canonical
from reproduction.data import SEED
from reproduction.page import Page, table
from reproduction.searches import SEARCHES, WIDTHS, Search, half, searches
from reproduction.trial import trial
from safecf.errors import choose
from safecf.models import MODELS
from safecf.tuning import Objective, Trial, best

CENTRES = 4  # how many settings a further round is near to
KEPT, STARTS = 3, 3  # how many settings are repeated, and how often
SAME = 5e-4  # objectives that differ by less are equal: about what means of three starts differ by
TRIALS = 64
EDGE, NEAR = "†", 0.1  # the mark of values near an end, and how near, as a share of the range
METRIC, LEVELS = "recall@20", (1.0, 0.3)


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


def tried(search: Search, known: dict[str, Result], options: Options) -> list[dict[str, object]]:
    """Return what a search tries for a few epochs: one round, and when it is done the next.

    Every round but the first is near the best of those before it.
    """
    found = search.first(options.trials, options.trials == TRIALS)
    count = 0 if search.trials is None else half(len(found))
    for number in range(len(WIDTHS) if count else 0):
        if not all(_key(search, each, options) in known for each in found):
            break
        centres = _best(search, found, known, options, CENTRES)
        found += [each for each in search.nearby(centres, count, number) if each not in found]
    return found


def repeated(search: Search, known: dict[str, Result], options: Options) -> list[dict[str, object]]:
    """Return what a search repeats: nothing before the last round is done, then the best of all."""
    found = tried(search, known, options)
    if not all(_key(search, each, options) in known for each in found):
        return []
    chosen = _best(search, found, known, options, KEPT)
    return [sized for each in chosen for sized in search.sized(each)]


def cells(options: Options) -> list[Cell]:
    """Return the first rounds."""
    return then(Results(()), options)


def then(results: Results, options: Options) -> list[Cell]:
    """Return all cells so far: the further rounds, and the repetitions once there are none."""
    known = by_settings(results)
    return [
        cell for search in searches(options.data) for _, cell in _stages(search, known, options)
    ]


def by_settings(results: Results) -> dict[str, Result]:
    """Return the results by the settings of their cells."""
    return {canonical(each.settings): each for each in results}


def _key(search: Search, tried: dict[str, object], options: Options) -> str:
    return canonical(_cell(search, tried, 0, False, options.data).settings)


def _best(
    search: Search,
    tried: list[dict[str, object]],
    known: dict[str, Result],
    options: Options,
    count: int,
) -> list[dict[str, object]]:
    """Return the best settings, at any of the epochs."""
    trials = [
        Trial(each, [max(_values(known[_key(search, each, options)], search.objective))])
        for each in tried
    ]
    return [each.options for each in best(trials, count)]


def _starts(search: Search) -> range:
    """Return the seeds of the second round, other ones than in the first."""
    chance = "random_state" in MODELS[search.model]().get_params()
    return range(1, 1 + STARTS) if chance else range(1)


def compare(search: Search, results: dict[str, Result], options: Options) -> list[Found]:
    """Return the repeated settings, each with its number of epochs, the one to take first.

    Of what is equally good for all that one can tell, the smaller and the shorter is taken.
    """
    found = []
    for each in repeated(search, results, options):
        runs = [
            results[canonical(_cell(search, each, seed, True, options.data).settings)]
            for seed in _starts(search)
        ]
        trials = [
            Trial({"epochs": epochs}, [_values(run, search.objective)[place] for run in runs])
            for place, epochs in enumerate(search.final)
        ]
        enough = max(each.value for each in trials) - SAME
        place, chosen = next((n, each) for n, each in enumerate(trials) if each.value >= enough)
        mean, tail = (
            sum(_values(run, Objective(METRIC, (level,)))[place] for run in runs) / len(runs)
            for level in LEVELS
        )
        epochs = int(chosen.options["epochs"])
        found.append(Found(each, epochs, chosen.value, mean, tail))
    enough = max(each.value for each in found) - SAME

    def order(each: Found) -> tuple[bool, float, float]:
        small = each.value >= enough
        return not small, float(str(each.options.get("factors", 0))) if small else 0, -each.value

    return sorted(found, key=order)


def _values(result: Result, objective: Objective) -> list[float]:
    """Return the objective after each of the epochs; nothing is worse than to diverge."""
    if result.record["epochs"] != result.settings["epochs"]:
        return [-math.inf] * len(result.settings["epochs"])
    return [objective({objective.metric: row}) for row in result.record[objective.metric]]


def chosen(
    search: Search, found: list[Found], options: Options
) -> list[tuple[str, presets.Preset]]:
    """Return the preset of a search, and the best of each size, with the sets they belong to."""
    best = [(search.which, _preset(search, search.name, found[0], options))]
    for size in search.sizes:
        of = max((f for f in found if f.options["factors"] == size), key=lambda f: f.value)
        best.append(("sized", _preset(search, f"{search.name}, d = {size}", of, options)))
    return best


def _preset(search: Search, name: str, found: Found, options: Options) -> presets.Preset:
    settings = dict(found.options)
    if "iterations" in MODELS[search.model]().get_params():
        settings["iterations"] = found.epochs
    command = EXPERIMENT.command(Options(options.data, trials=options.trials))
    return presets.Preset(name, search.model, settings, command)


def render(results: Results, options: Options) -> Page:
    """Return the best settings of every search, and put them into `options.presets`, if given."""
    known = by_settings(results)
    blocks, presets_found = [_explained()], list[tuple[str, presets.Preset]]()
    for search in searches(options.data):
        found = compare(search, known, options)
        presets_found += chosen(search, found, options)
        lines = [
            [_text(search, each), str(each.epochs), each.value, each.mean, each.tail]
            for each in found
        ]
        scores = [heading((METRIC, level)) for level in LEVELS]
        header = ["options", "epochs", "objective", *scores]
        blocks += [_story(search, options), table(header, lines)]
    everything = presets.Everything()
    for which, preset in presets_found:
        presets.put(everything, which, options.data, preset)
    if options.presets is not None:
        presets.update(options.presets, options.data, presets_found)
    blocks += ["The presets:", f"```toml\n{presets.dump(everything)}```"]
    return Page(blocks, _rows(known, options))


def _rows(known: dict[str, Result], options: Options) -> list[dict[str, object]]:
    """Return all that was tried and repeated, with the scores after each of the epochs."""
    rows = []
    for search in searches(options.data):
        for stage, cell in _stages(search, known, options):
            found = known[canonical(cell.settings)]
            row = {"set": search.which, "model": search.name, "stage": stage}
            row |= {"seed": cell.settings["seed"], "options": canonical(cell.settings["options"])}
            kinds = [search.objective, *(Objective(METRIC, (level,)) for level in LEVELS)]
            scores = zip(*(_values(found, kind) for kind in kinds), strict=True)
            for epochs, (value, mean, tail) in zip(cell.settings["epochs"], scores, strict=True):
                rows.append(
                    {**row, "epochs": epochs, "objective": value, "R@20": mean, "tail 0.3": tail}
                )
    return rows


def _stages(
    search: Search, known: dict[str, Result], options: Options
) -> Iterator[tuple[str, Cell]]:
    """Return all cells of a search, and whether each is of the search or a repetition."""
    for each in tried(search, known, options):
        yield "search", _cell(search, each, 0, False, options.data)
    for each in repeated(search, known, options):
        for seed in _starts(search):
            yield "repetition", _cell(search, each, seed, True, options.data)


def _explained() -> str:
    return (
        "Everything is scored for the validation users of one split, on ml-1m the paper's; its "
        "test users were not looked at. The set `grid` is the paper's way: its ranges, d = 32, by "
        "the mean; of its batch sizes for Mult-VAE, three, and for the kernels the authors' "
        "settings but for the bandwidth, in a wider range. The set `tuned` has ranges of its own, "
        "not all as wide as the paper's, and more factors, and goes by the average of mean and "
        f"tail. First come short trainings from one start. The best of them are run from {STARTS} "
        "other starts, most of them for longer, and the best mean over these decides: of each "
        f"setting the fewest epochs within {SAME:g} of its best, and then of all settings the "
        f"fewest factors within {SAME:g} of the best. Models with rows to solve were sought with "
        "one number of factors, and only repeated with others. The differences between the best "
        "are smaller than what other validation users would make of them. On ml-1m, the ranges of "
        "SAFER2 and its fixed tail level follow some 400 earlier trainings of SAFER2 for the same "
        "validation users, against some 20 of iALS; a first search of SAFER2, over tail levels as "
        "well, was given up for worse results, and so was a later one, over rho from 0 to 1 with "
        "bandwidths up to 30. The ranges of ERM-MF there were made wider when the best lay near "
        f"their ends. {EDGE} marks a value in the first or the last tenth of its range. The CSV "
        "file has all of the searches below."
    )


def _story(search: Search, options: Options) -> str:
    """Say how a search went about it."""
    count = len(search.first(options.trials, options.trials == TRIALS))
    kind = f"{count} on a grid"
    if search.trials is not None:
        kind = f"{count} at random, {len(WIDTHS)} times {half(count)} near the {CENTRES} best"
    epochs, final = (", ".join(map(str, each)) for each in (search.epochs, search.final))
    sizes = f", d = {', '.join(map(str, search.sizes))}" if search.sizes else ""
    ranges = "; ".join(f"{name} {each}" for name, each in search.space.items())
    return (
        f"**{search.name}**, set `{search.which}`, by the {search.objective}: {ranges}; {kind}, "
        f"after {epochs} epochs; then the {KEPT} best, after {final}{sizes}."
    )


def _text(search: Search, found: Found) -> str:
    """Write the options, with a mark at those that a wider range might have changed."""
    texts = []
    for name, value in found.options.items():
        place = search.space[name].place(value) if name in search.space else None
        is_near = place is not None and not NEAR <= place <= 1 - NEAR
        texts.append(f"{name} {value}{EDGE if is_near else ''}")
    return ", ".join(texts)


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
