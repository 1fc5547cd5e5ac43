"""`defaults`: models as they come, against the best of 40 trials, and SAFER2 against iALS.

`safecf.tune` searches on the validation users of one split of every data set. Then the defaults and
the best trials are scored for the test users of all splits.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from reproduction import scores
from reproduction.data import SEED, repeated_seeds
from reproduction.experiment import Case, Experiment, Options, Result, Row, Tables, grouped
from reproduction.page import heading
from reproduction.presets import options_text
from reproduction.tasks import peer, quality, statistics, tuned
from safecf.defaults import LEVEL

SEVERAL = "several"
DATA = ("ml-1m", "book-crossing", "demo", "short")  # by length of the history
GOWALLA, STEAM = "gowalla", "steam"  # each has a page of its own
SEARCHED = ("unobserved_weight", "regularization", "bandwidth")
FEWER = {GOWALLA: 3}  # splits of large data, whose test users are many
METRICS = ["recall", "ndcg"]
COLUMNS = [(metric, level) for metric in ("recall@20", "ndcg") for level in (1.0, LEVEL)]
IMPLICIT = "implicit"
# By name: the class, and options that differ from its defaults.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "iALS": ("IALS", {}),
    "ERM-MF": ("ERMMF", {}),
    "SAFER2": ("SAFER2", {}),
    "SAFER2, ridge outside": ("SAFER2", {"ridge_in_risk": False}),
}
# What trials are chosen by: the mean of nDCG, to judge the defaults; also its tail, to compare.
DEFAULTS, MEANS, TAILS = "defaults", "means", "mean and tail"
PAIRS = [
    ("SAFER2", "iALS"),
    ("SAFER2, ridge outside", "iALS"),
    ("SAFER2", "SAFER2, ridge outside"),
    ("ERM-MF", "iALS"),
]
FACTS = {
    "searched": "the default ranges of `safecf tune`, with as many factors and up to as many "
    "epochs as the defaults, on the validation users of one split",
    "means": "the mean of nDCG",
}


def sets(options: Options) -> tuple[str, ...]:
    """Return the names of the data sets."""
    return DATA if options.data == SEVERAL else (options.data,)


def splits(data: str, options: Options) -> list[int]:
    """Return the seeds of the splits whose test users are scored."""
    return repeated_seeds(min(options.splits, FEWER.get(data, options.splits)))


def cases(options: Options) -> list[Case]:
    """Return facts, implicit where it is installed, the defaults, and the searches."""
    found = []
    for data in sets(options):
        found.append(Case(statistics, {"data": data, "split": SEED}, ("facts", data)))
        about = {"data": data, "on": "test", "seed": 0, "metrics": METRICS}
        if find_spec(IMPLICIT) is not None:
            for split in splits(data, options):
                case = Case(peer, {**about, "split": split}, ("test", data, IMPLICIT, DEFAULTS))
                found.append(case)
        for name, (kind, fixed) in VARIANTS.items():
            settings = {"data": data, "split": SEED, "model": kind, "options": fixed, "seed": 0}
            settings |= {"metric": "ndcg", "objective": "both", "trials": options.trials + 1}
            settings["space"] = {}
            found.append(Case(tuned, settings, ("search", data, name)))
            found += tests(data, name, DEFAULTS, {}, options)
    return found


def tests(
    data: str, model: str, name: str, changed: dict[str, Any], options: Options
) -> list[Case]:
    """Return the cases of a setting for the test users of all splits."""
    kind, fixed = VARIANTS[model]
    about = {"data": data, "on": "test", "seed": 0, "metrics": METRICS, "model": kind}
    settings = {**about, "options": {**fixed, **changed}}
    label = ("test", data, model, name)
    return [Case(quality, {**settings, "split": split}, label) for split in splits(data, options)]


def then(results: list[Result], options: Options) -> list[Case]:
    """Return the best trials of the searches for the test users."""
    return [
        case
        for each in results
        if each.case.label[0] == "search"  # type: ignore[index]
        for name, chosen in best(each).items()
        for case in tests(*each.case.label[1:], name, chosen, options)  # type: ignore[index]
    ]


def best(search: Result) -> dict[str, dict[str, Any]]:
    """Return the options of the best trials, by the mean and by both; {} are the defaults."""
    first, *_ = trials = search.record["trials"]
    gains = np.array([np.divide(each["scores"], first["scores"]) for each in trials])
    found = {}
    for name, of in ((MEANS, gains[:, 0]), (TAILS, np.nanmean(gains, axis=1))):
        place = int(np.nanargmax(of))
        chosen = {**trials[place]["options"], "iterations": trials[place]["epochs"]}
        found[name] = chosen if place else {}
    return found


def tables(results: list[Result], options: Options) -> Tables:
    """Return how near the defaults come to the best trials, and what SAFER2 gains, by data set."""
    found = grouped(results)
    numbers: list[Row] = []
    against, implicit, gains, chosen = [], [], [], []
    for data in sets(options):
        of = {key[2:]: each for key, each in found.items() if key[:2] == ("test", data)}
        for (
            model,
            _,
        ) in VARIANTS.items():  # a search may have chosen the defaults, or one trial twice
            for name in (MEANS, TAILS):
                if (model, name) not in of:
                    (search,) = found["search", data, model]
                    other = best(search)[MEANS] == best(search)[name] and (model, MEANS) in of
                    of[model, name] = of[model, MEANS if other else DEFAULTS]
        numbers += scores.numbers({f"{a}, {b}": each for (a, b), each in of.items()}, COLUMNS)
        known = scores.evaluations(of)
        means = [column for column in COLUMNS if column[1] == 1]
        for model in VARIANTS:
            ours, theirs = (model, DEFAULTS), (model, MEANS)
            for row in scores.gains(known, [(ours, theirs)], means):
                values = {"default": known[ours], "best": known[theirs]}
                about = {"data": data, "model": model}
                for what, each in values.items():
                    head = f"{heading(row['metric'])}, {what}"
                    against.append({**about, "heading": head, "value": each.mean(row["metric"])})
                ratio = {name: 100 + row[of_] for name, of_ in _RATIO.items()}
                against.append({**about, "heading": f"{heading(row['metric'])}, %", **ratio})
            (search,) = found["search", data, model]
            picked = {n: options_text(each) or "the defaults" for n, each in best(search).items()}
            start = search.record["trials"][0]["options"]
            resolved = options_text({name: float(f"{v:.3g}") for name, v in start.items()})
            chosen.append({"data": data, "model": model, "resolved": resolved, **picked})
        for column in means if (IMPLICIT, DEFAULTS) in of else ():
            peers = (IMPLICIT, DEFAULTS)
            about = {"data": data, "column": heading(*column)}
            implicit.append({**about, "model": IMPLICIT, "value": known[peers].mean(column[0])})
            pairs = [((name, DEFAULTS), peers) for name in VARIANTS if "ridge" not in name]
            for (model, _), row in zip(
                (pair[0] for pair in pairs), scores.gains(known, pairs, [column]), strict=True
            ):
                implicit.append({**about, **row, "model": model})
        for name in (TAILS, DEFAULTS):
            for pair in PAIRS:
                both = tuple((each, name) for each in pair)
                about = {"data": data, "settings": name, "model": pair[0], "baseline": pair[1]}
                gains += [{**row, **about} for row in scores.gains(known, [both], COLUMNS)]  # type: ignore[list-item]
    gains.sort(key=lambda row: row["settings"] == DEFAULTS)
    facts = [{"data": data, **found["facts", data][0].record["facts"]} for data in sets(options)]
    return {
        "numbers": numbers,
        "facts": facts,
        "against": against,
        "implicit": implicit,
        "gains": gains,
        "chosen": chosen,
        "about": [FACTS],
    }


_RATIO = {"ratio": "gain", "low": "low", "high": "high"}


def draw(tables: Tables) -> Any:
    """Draw the gain of the tuned SAFER2 over the tuned iALS, a panel each for nDCG and its tail."""
    from reproduction.figures import error_bars, line_style, panels  # noqa: PLC0415

    figure, axes = panels(2, height=2.4, sharey=True)
    wanted = {"model": "SAFER2", "baseline": "iALS", "settings": TAILS, "metric": "ndcg"}
    rows = [row for row in tables["gains"] if wanted.items() <= row.items()]
    for panel, level in zip(axes, (1.0, LEVEL), strict=True):
        for place, facts in enumerate(tables["facts"]):
            length = facts["training interactions"] / facts["training users"]
            style = line_style(place)
            kept = {"color": style.color, "marker": style.marker, "label": facts["data"]}
            for row in rows:
                if (row["data"], row["tail"]) == (facts["data"], level) and row["gain"] is not None:
                    ends = error_bars(*([row[name]] for name in _RATIO.values()))
                    panel.errorbar(length, row["gain"], yerr=ends, **kept)
        panel.axhline(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel("interactions per user")
        panel.set_title(heading("ndcg", level))
    axes[0].set_ylabel("gain over iALS, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


EXPERIMENT = Experiment(
    "defaults",
    "Defaults against tuned settings, and where SAFER2 helps",
    cases,
    tables,
    {"": draw},
    then,
    paper="none; data sets of different density, with settings of our own",
    data=(SEVERAL, GOWALLA, STEAM),
    counts={"splits": 10, "trials": 40},
)
