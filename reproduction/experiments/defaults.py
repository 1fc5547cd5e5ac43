"""`defaults`: models as they come, against the best of 40 trials, and SAFER2 against iALS.

Round by round, on the validation users of one split of every data set: the defaults, which give the
centres of the ranges; half of the trials at random; twice a quarter, proposed by TPE. Then the
defaults and the best trials on the test users of all splits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from reproduction.aggregate import Gain, Sample, gain, heading, rows, samples
from reproduction.base import Cell, Experiment, Options, Result, Results, canonical
from reproduction.data import SEED, repeated_seeds
from reproduction.page import Page, table
from reproduction.presets import options_text
from reproduction.published import Column
from reproduction.tasks.peer import peer
from reproduction.tasks.quality import quality
from reproduction.tasks.statistics import statistics
from safecf.defaults import LEVEL
from safecf.measures.tails import tail_mean
from safecf.models import MODELS
from safecf.tuning import suggest
from safecf.tuning.space import DEFAULT_RANGES, Space

SEVERAL = "several"
DATA = ("ml-1m", "book-crossing", "demo", "short")  # by length of the history
GOWALLA, STEAM = "gowalla", "steam"  # each has a page of its own
SEARCHED = ("unobserved_weight", "regularization", "bandwidth")
FEWER = {GOWALLA: 3}  # splits of large data, whose test users are many
METRICS = ["recall", "ndcg"]
COLUMNS: list[Column] = [
    (metric, level) for metric in ("recall@20", "ndcg") for level in (1.0, LEVEL)
]
IMPLICIT = "implicit"

# By name: the class, and options that differ from its defaults.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "iALS": ("IALS", {}),
    "ERM-MF": ("ERMMF", {}),
    "SAFER2": ("SAFER2", {}),
    "SAFER2, ridge outside": ("SAFER2", {"ridge_in_risk": False}),
}


class Pick(NamedTuple):
    """What the best trial is chosen by: the mean of these columns, each over that of the defaults.

    A column in which the defaults have 0 is left out.
    """

    name: str
    columns: list[Column]


# By the means, to judge the defaults; by mean and tail, to compare models.
MEANS = Pick("means", [("recall@20", 1.0), ("ndcg", 1.0)])
TAILS = Pick("mean and tail", [("ndcg", 1.0), ("ndcg", LEVEL)])
AS_THEY_COME = "defaults"


@dataclass(frozen=True)
class Search:
    """The trials of a model on a data set, as far as their results are known."""

    data: str
    model: str
    trials: int
    known: dict[str, Result]

    @cached_property
    def start(self) -> Cell:
        """The cell of the defaults on the validation users."""
        return self.cell({}, SEED, "validation")

    def cell(self, options: dict[str, Any], split: int, on: str) -> Cell:
        """Return the cell that trains the model with these options."""
        kind, fixed = VARIANTS[self.model]
        about = {"data": self.data, "split": split, "on": on, "seed": 0, "metrics": METRICS}
        return Cell(quality, {**about, "model": kind, "options": {**fixed, **options}})

    def result(self, cell: Cell) -> Result | None:
        """Return the result of a cell, None if there is none yet."""
        return self.known.get(canonical(cell.settings))

    @cached_property
    def space(self) -> Space:
        """The default ranges of `safecf tune`, around what the defaults were resolved to."""
        kind, fixed = VARIANTS[self.model]
        options = MODELS[kind](**fixed).get_params()
        first = self.result(self.start)
        centres = options | (first.record["resolved"] if first else {})
        return {
            name: DEFAULT_RANGES[name].at(centres[name]) for name in SEARCHED if name in options
        }

    @cached_property
    def tried(self) -> list[dict[str, Any]]:
        """The options of the trials so far, the defaults apart."""
        if self.result(self.start) is None:
            return []
        half, quarter = -(-self.trials // 2), self.trials // 4
        found = suggest(self.space, [], half, seed=0)
        for number in (1, 2):
            scores = [self._score(each, TAILS) + self._score(each, MEANS) for each in found]
            if np.isnan(scores).any():
                break
            tried = [(each, [score]) for each, score in zip(found, scores, strict=True)]
            found += suggest(self.space, tried, quarter, seed=number)
        return found

    def best(self, pick: Pick) -> dict[str, Any] | None:
        """Return the options of the best trial, {} for the defaults; None before all are done."""
        scores = [self._score(each, pick) for each in self.tried]
        if not scores or np.isnan(scores).any() or len(scores) < self.trials:
            return None
        place = int(np.argmax(scores))
        return self.tried[place] if scores[place] > 1 else {}

    def _score(self, options: dict[str, Any], pick: Pick) -> float:
        """Return the mean ratio to the defaults; NaN if the cell is not done."""
        before, after = self.result(self.start), self.result(self.cell(options, SEED, "validation"))
        if before is None or after is None:
            return np.nan
        ratios = [
            _tail(after, column) / _tail(before, column)
            for column in pick.columns
            if _tail(before, column)
        ]
        return float(np.mean(ratios))

    def settings(self) -> dict[str, dict[str, Any] | None]:
        """Return the options to be tested, by name; None if they are not known yet."""
        picks = {pick.name: self.best(pick) for pick in (MEANS, TAILS)}
        return {AS_THEY_COME: {}, **picks}

    def cells(self, splits: list[int]) -> Iterator[Cell]:
        """Return all cells so far."""
        yield self.start
        for each in self.tried:
            yield self.cell(each, SEED, "validation")
        for options in self.settings().values():
            if options is not None:
                yield from (self.cell(options, split, "test") for split in splits)


def _tail(result: Result, column: Column) -> float:
    metric, level = column
    return tail_mean(result.record[metric], level)


def sets(options: Options) -> tuple[str, ...]:
    """Return the names of the data sets."""
    return DATA if options.data == SEVERAL else (options.data,)


def splits(data: str, options: Options) -> list[int]:
    """Return the seeds of the splits whose test users are scored."""
    return repeated_seeds(min(options.splits, FEWER.get(data, options.splits)))


def searches(results: Results, options: Options) -> list[Search]:
    """Return the search of every model on every data set, with the results so far."""
    known = results.by_settings()
    return [
        Search(data, model, options.trials, known) for data in sets(options) for model in VARIANTS
    ]


def cells(options: Options) -> list[Cell]:
    """Return the first round."""
    return then(Results(()), options)


def then(results: Results, options: Options) -> list[Cell]:
    """Return all cells so far: facts, peers, trials, and tests where all trials are done."""
    found = [Cell(statistics, {"data": data, "split": SEED}) for data in sets(options)]
    for data in sets(options):
        found += _peers(data, options)
    for each in searches(results, options):
        found += each.cells(splits(each.data, options))
    unique = {canonical([cell.task, cell.settings]): cell for cell in found}
    return list(unique.values())


def _peers(data: str, options: Options) -> list[Cell]:
    """Return the cells of implicit, none if it is not installed."""
    if find_spec(IMPLICIT) is None:
        return []
    about = {"data": data, "on": "test", "seed": 0, "metrics": METRICS}
    return [Cell(peer, {**about, "split": split}) for split in splits(data, options)]


Tested = dict[tuple[str, str], list[Result]]  # by model and setting, one result per split


def tested(data: str, results: Results, options: Options) -> Tested:
    """Return the results on the test users of a data set."""
    known = results.by_settings()
    found: Tested = {}
    for search in searches(results, options):
        if search.data != data:
            continue
        for name, chosen in search.settings().items():
            assert chosen is not None  # all trials are done
            cells = [search.cell(chosen, split, "test") for split in splits(data, options)]
            found[search.model, name] = [known[canonical(cell.settings)] for cell in cells]
    peers = _peers(data, options)
    if peers:
        found[IMPLICIT, AS_THEY_COME] = [known[canonical(cell.settings)] for cell in peers]
    return found


Known = dict[str, dict[Column, dict[tuple[str, str], Sample]]]  # by data set and column


def render(results: Results, options: Options) -> Page:
    """Return how near the defaults come to the best trials, and what SAFER2 gains, by data set."""
    found = {data: tested(data, results, options) for data in sets(options)}
    known: Known = {
        data: {column: samples(each, column) for column in COLUMNS} for data, each in found.items()
    }
    facts = {each.settings["data"]: each.record for each in results if "on" not in each.settings}
    means = [column for column in COLUMNS if column[1] == 1]
    return Page(
        [
            "Models as they come, `IALS()`, `ERMMF()`, `SAFER2()`, on data that differ in density "
            "and in the length of histories; hours played are the confidences of Steam, and "
            "`demo` and `short` are synthetic. They are compared with the best of "
            f"{options.trials} trials of the same model: the default ranges of `safecf tune`, "
            f"{' and '.join((', '.join(SEARCHED[:-1]), SEARCHED[-1]))}, half of the trials at "
            "random and twice a quarter by TPE, on the validation users of one split, with as "
            "many factors and epochs as the defaults. Below are means over the test users of "
            f"{options.splits} splits, of Gowalla {FEWER[GOWALLA]}, with 95 % intervals that draw "
            "users with all their appearances. nDCG is that of the whole ranking.",
            "The data, of the first split:",
            _facts(facts),
            "The defaults in percent of the best trial, which was chosen by the means of R@20 and "
            "nDCG:",
            _against_tuned(known, means),
            *_against_implicit(known, means),
            "What SAFER2 gains over iALS, in percent; trials chosen by the average of nDCG and its "
            "tail, the same for both. Empty where the tail is zero, since no model has a hit:",
            _gains(known, "SAFER2", "iALS"),
            "The same of the paper's form, with the ridge outside the risk:",
            _gains(known, "SAFER2, ridge outside", "iALS"),
            "What SAFER2 gains by the users' ridge in the risk, in percent of the paper's form:",
            _gains(known, "SAFER2", "SAFER2, ridge outside"),
            "What ERM-MF gains over iALS: every user counts the same, and nobody more:",
            _gains(known, "ERM-MF", "iALS"),
            "What the defaults were resolved to, and the options of the best trials:",
            _chosen(results, options),
        ],
        [
            row
            for each in found.values()
            for (model, name), all_ in each.items()
            for row in rows(f"{model}, {name}", all_, COLUMNS)
        ],
        lambda: draw(known, facts),
        "What the tuned SAFER2 gains over the tuned iALS, by mean length of the history",
    )


def _facts(facts: dict[str, dict[str, Any]]) -> str:
    names = [name for name in next(iter(facts.values())) if name != "warnings"]
    lines = [[data, *(f"{int(each[name]):,}" for name in names)] for data, each in facts.items()]
    return table(["", *names], lines)


def _against_tuned(known: Known, columns: list[Column]) -> str:
    lines = []
    for data, of in known.items():
        for model in VARIANTS:
            line = [data, model]
            for column in columns:
                ours, best = of[column][model, AS_THEY_COME], of[column][model, MEANS.name]
                ratio = gain(best, ours)
                low, high = (100 + each for each in ratio.users)
                line += [f"{ours.values.mean():.4f}", f"{best.values.mean():.4f}"]
                line += [f"**{100 + ratio.value:.1f}** [{low:.1f}, {high:.1f}]"]
            lines.append(line)
    headings = [f"{heading(each)}, {what}" for each in columns for what in ("default", "best", "%")]
    return table(["", "", *headings], lines)


def _against_implicit(known: Known, columns: list[Column]) -> list[str]:
    if (IMPLICIT, AS_THEY_COME) not in next(iter(known.values()))[columns[0]]:
        return []
    names = [name for name in VARIANTS if "ridge" not in name]
    lines = []
    for data, of in known.items():
        for column in columns:
            theirs = of[column][IMPLICIT, AS_THEY_COME]
            gains = (gain(theirs, of[column][name, AS_THEY_COME]) for name in names)
            scores = f"{theirs.values.mean():.4f}"
            lines.append([data, heading(column), scores, *map(_text, gains)])
    said = "What the defaults gain over `implicit.als.AlternatingLeastSquares()`, in percent:"
    return [said, table(["", "", "implicit", *names], lines)]


def _gains(known: Known, model: str, baseline: str) -> str:
    lines = [
        [data, name, *(_text(_gain(of[column], model, baseline, name)) for column in COLUMNS)]
        for name in (TAILS.name, AS_THEY_COME)
        for data, of in known.items()
    ]
    return table(["", "settings", *map(heading, COLUMNS)], lines)


def _gain(of: dict[tuple[str, str], Sample], model: str, baseline: str, name: str) -> Gain:
    return gain(of[baseline, name], of[model, name])


def _text(found: Gain) -> str:
    if not np.isfinite([found.value, *found.users]).all():
        return ""
    return f"{found.value:+.1f} [{found.users[0]:+.1f}, {found.users[1]:+.1f}]"


def _chosen(results: Results, options: Options) -> str:
    lines = []
    for each in searches(results, options):
        start = each.result(each.start)
        resolved = {} if start is None else start.record["resolved"]
        picked = [options_text(each.best(pick) or {}) or "the defaults" for pick in (MEANS, TAILS)]
        shown = {name: float(f"{value:.3g}") for name, value in resolved.items()}
        lines.append([each.data, each.model, options_text(shown), *picked])
    return table(["", "", "resolved", *(f"by {pick.name}" for pick in (MEANS, TAILS))], lines)


def draw(known: Known, facts: dict[str, dict[str, Any]]) -> Any:
    """Draw the gain of the tuned SAFER2 over the tuned iALS, a panel each for nDCG and its tail."""
    from reproduction.figures import error_bars, line_style, panels  # noqa: PLC0415

    figure, axes = panels(2, height=2.4, sharey=True)
    for panel, level in zip(axes, (1.0, LEVEL), strict=True):
        for place, (data, of) in enumerate(known.items()):
            found = _gain(of["ndcg", level], "SAFER2", "iALS", TAILS.name)
            ends = error_bars([found.value], *np.reshape(found.users, (2, 1)))
            length = facts[data]["training interactions"] / facts[data]["training users"]
            style = line_style(place)
            panel.errorbar(
                length, found.value, yerr=ends, label=data, color=style.color, marker=style.marker
            )
        panel.axhline(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel("interactions per user")
        panel.set_title(heading(("ndcg", level)))
    axes[0].set_ylabel("gain over iALS, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


EXPERIMENT = Experiment(
    "defaults",
    "Defaults against tuned settings, and where SAFER2 helps",
    "none; data sets of different density, with settings of our own",
    cells,
    render,
    then=then,
    data=(SEVERAL, GOWALLA, STEAM),
    splits=10,
    trials=40,
)
