"""`defaults`: models as they come, against the best of 40 trials, and SAFER2 against iALS.

`safecf.tune` searches on the validation users of one split of every data set. Then the defaults and
the best trials are scored for the test users of all splits. Names are in defaults.toml.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from reproduction import scores, settings
from reproduction.data import SEED, repeated_seeds
from reproduction.experiment import Case, Options, Result, Settings, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves
from reproduction.page import heading
from reproduction.presets import options_text
from reproduction.tasks import quality, statistics, tuned
from safecf.defaults import LEVEL

DATA = settings("experiments/defaults")
MODELS = DATA["models"]
COLUMNS = [(metric, level) for metric in ("recall@20", "ndcg") for level in (1.0, LEVEL)]
RATIO = {"ratio": "gain", "low": "low", "high": "high"}
IMPLICIT = "implicit"
# What trials are chosen by: the mean of nDCG, to judge the defaults; also its tail, to compare.
DEFAULTS, MEANS, TAILS = "defaults", "means", "mean and tail"


def _cases(options: Options) -> list[Case]:
    """Return facts, implicit where it is installed, the defaults, and the searches."""
    found = []
    for data in DATA["sets"][options.data]:
        found.append(Case(statistics, {"data": data, "split": SEED}, ("facts", data)))
        if find_spec(IMPLICIT) is not None:
            found += _tests(data, IMPLICIT, DEFAULTS, options, IMPLICIT, {})
        for name, (kind, fixed) in MODELS.items():
            settings = {"data": data, "split": SEED, "model": kind, "options": fixed, "seed": 0}
            settings |= {"metric": "ndcg", "objective": "both", "trials": options.trials + 1}
            found.append(Case(tuned, {**settings, "space": {}}, ("search", data, name)))
            found += _tests(data, name, DEFAULTS, options, kind, fixed)
    return found


def _tests(
    data: str, model: str, name: str, options: Options, kind: str, chosen: Settings
) -> list[Case]:
    """Return the cases of a setting for the test users of all splits."""
    about = {"data": data, "on": "test", "seed": 0, "metrics": ["recall", "ndcg"]}
    about |= {"model": kind, "options": chosen}
    splits = repeated_seeds(min(options.splits, DATA["splits"].get(data, options.splits)))
    return [Case(quality, {**about, "split": each}, ("test", data, model, name)) for each in splits]


def _then(results: list[Result], options: Options) -> list[Case]:
    """Return the best trials of the searches for the test users."""
    found = []
    for each in results:
        if each.label[0] == "search":
            _, data, model = each.label
            kind, fixed = MODELS[model]
            for name, chosen in _best(each).items():
                found += _tests(data, model, name, options, kind, {**fixed, **chosen})
    return found


def _best(search: Result) -> dict[str, dict[str, Any]]:
    """Return the options of the best trials, by the mean and by both; {} are the defaults."""
    first, *_ = trials = search.record["trials"]
    gains = np.array([np.divide(each["scores"], first["scores"]) for each in trials])
    found = {}
    for name, of in ((MEANS, gains[:, 0]), (TAILS, np.nanmean(gains, axis=1))):
        place = int(np.nanargmax(of))
        chosen = {**trials[place]["options"], "iterations": trials[place]["epochs"]}
        found[name] = chosen if place else {}
    return found


def _tables(results: list[Result], options: Options) -> Tables:
    """Return how near the defaults come to the best trials, and what SAFER2 gains, by data set."""
    about = {name: DATA[name] for name in ("searched", "means")}
    names = ("numbers", "facts", "against", "implicit", "gains", "chosen")
    stored: Tables = {**{name: [] for name in names}, "about": [about]}
    found = grouped(results)
    means = [column for column in COLUMNS if column[1] == 1]
    for data in DATA["sets"][options.data]:
        of = {label[2:]: each for label, each in found.items() if label[:2] == ("test", data)}
        known = scores.evaluations(of)
        named = {f"{model}, {name}": each for (model, name), each in of.items()}
        stored["numbers"] += scores.numbers(named, COLUMNS)
        stored["facts"].append({"data": data, **found["facts", data][0].record["facts"]})
        for model in MODELS:
            about = {"data": data, "model": model}
            for row in scores.gains(known, [((model, DEFAULTS), (model, MEANS))], means):
                values = {
                    "default": {"value": known[model, DEFAULTS].mean(row["metric"])},
                    "best": {"value": known[model, MEANS].mean(row["metric"])},
                    "%": {name: 100 + row[of] for name, of in RATIO.items()},
                }
                stored["against"] += [
                    {**about, "heading": f"{heading(row['metric'])}, {what}", **each}
                    for what, each in values.items()
                ]
            (search,) = found["search", data, model]
            picked = {n: options_text(each) or "the defaults" for n, each in _best(search).items()}
            start = search.record["trials"][0]["options"]
            resolved = options_text({name: float(f"{v:.3g}") for name, v in start.items()})
            stored["chosen"].append({**about, "resolved": resolved, **picked})
        for column in means if (IMPLICIT, DEFAULTS) in of else ():
            peers, about = (IMPLICIT, DEFAULTS), {"data": data, "column": heading(*column)}
            value = known[peers].mean(column[0])
            stored["implicit"].append({**about, "model": IMPLICIT, "value": value})
            for model in (name for name in MODELS if "ridge" not in name):
                (row,) = scores.gains(known, [((model, DEFAULTS), peers)], [column])
                stored["implicit"].append({**row, **about, "model": model})
        for name in (TAILS, DEFAULTS):
            for model, baseline in DATA["pairs"]:
                about = {"data": data, "settings": name, "model": model, "baseline": baseline}
                rows = scores.gains(known, [((model, name), (baseline, name))], COLUMNS)
                stored["gains"] += [{**row, **about} for row in rows]
    stored["gains"].sort(key=lambda row: row["settings"] == DEFAULTS)
    return stored


def _draw(tables: Tables) -> Any:
    wanted = {"model": "SAFER2", "baseline": "iALS", "settings": TAILS, "metric": "ndcg"}
    rows = [row for row in tables["gains"] if wanted.items() <= row.items()]
    lengths = {
        row["data"]: row["training interactions"] / row["training users"] for row in tables["facts"]
    }
    drawn = []
    for level in (1.0, LEVEL):
        of = [row for row in rows if row["tail"] == level and row["gain"] is not None]
        points = {row["data"]: ([lengths[row["data"]]], [row["gain"]]) for row in of}
        bars = {row["data"]: ([row["low"]], [row["high"]]) for row in of}
        about = ("interactions per user", "gain over iALS, %", points, heading("ndcg", level))
        drawn.append(Panel(*about, level=0, bars=bars))
    return curves(drawn, legend=4, height=2.4, sharey=True)[0]


EXPERIMENT = declared("defaults", _cases, _tables, _draw, _then)
