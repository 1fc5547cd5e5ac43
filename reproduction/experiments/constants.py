"""`constants`: each constant behind the defaults changed by itself, on data of many densities."""

from typing import Any

import numpy as np

from reproduction.data import SEED
from reproduction.experiment import TINY, Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.tasks import quality
from safecf.defaults import LEVEL
from safecf.evaluation import tail_mean

DATA = (
    *("ml-1m", "book-crossing", "demo", "steam", "gowalla"),
    *("ml-1m-thin", "book-crossing-thin", "gowalla-thin", "short"),
)
MODELS = ("IALS", "SAFER2")
# Multiples of what the defaults were resolved to, and plain values.
MULTIPLES = {"unobserved_weight": (0.25, 0.5, 2.0, 4.0), "bandwidth": (0.5, 2.0, 4.0)}
VALUES: dict[str, tuple[float, ...]] = {
    "regularization": (0.0025, 0.005, 0.01, 0.02, 0.04),
    "factors": (64, 128),
    "iterations": (6, 24),
}
SMALL = {"factors": (2, 3), "iterations": (1, 2)}  # for "tiny" data
COLUMNS = {
    "R@20": ("recall@20", 1.0),
    "nDCG": ("ndcg", 1.0),
    "nDCG, worst-off 30 %": ("ndcg", LEVEL),
}


def case(data: str, model: str, option: str = "", value: float = 0, change: str = "") -> Case:
    """Return the case of the defaults, or of one change, for the validation users."""
    about = {"data": data, "split": SEED, "on": "validation", "seed": 0, "model": model}
    settings = {**about, "options": {option: value} if option else {}}
    settings["metrics"] = ["recall", "ndcg"]
    return Case(quality, settings, (data, model, option, value, change))


def cases(options: Options) -> list[Case]:
    """Return the defaults on all data."""
    sets = (TINY,) if options.data == TINY else DATA
    return [case(data, model) for data in sets for model in MODELS]


def then(results: list[Result], options: Options) -> list[Case]:
    """Return the changes, given the results of the defaults."""
    found = []
    for start in results[: len(cases(options))]:
        (data, model, *_), resolved = start.label, start.record["resolved"]
        for option, multiples in MULTIPLES.items():
            for times in multiples if option in resolved else ():
                value = float(f"{times * resolved[option]:.4g}")
                found.append(case(data, model, option, value, f"x {times:g}"))
        for option, values in (VALUES | (SMALL if data == TINY else {})).items():
            found += [case(data, model, option, value, f"{value:g}") for value in values]
    return found


def tables(results: list[Result], options: Options) -> Tables:
    """Return the defaults, and every change in percent of them."""
    numbers, starts = [], []
    base: dict[tuple[str, str], Row] = {}
    for (data, model, option, value, change), (result,) in grouped(results).items():
        seen = {
            name: tail_mean(result.record[metric], level)
            for name, (metric, level) in COLUMNS.items()
        }
        if not option:
            base[data, model] = seen
            starts.append({"data": data, "model": model, **seen, **result.record["resolved"]})
            continue
        row: Row = {
            "data": data,
            "model": model,
            "option": option,
            "value": value,
            "change": change,
        }
        ratios = {
            name: 100 * each / (base[data, model][name] or np.nan) for name, each in seen.items()
        }
        numbers.append({**row, **ratios})
    return {"numbers": numbers, "starts": starts}


def draw(tables: Tables) -> Any:
    """Draw a panel per option of SAFER2, a line per data set."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    drawn = []
    for option in (*MULTIPLES, *VALUES):
        points: dict[str, list[tuple[float, float]]] = {}
        for row in tables["numbers"]:
            if (row["model"], row["option"]) == (MODELS[-1], option):
                first = [(1.0, 100.0)] if option in MULTIPLES else []
                x = float(str(row["change"]).removeprefix("x "))
                points.setdefault(row["data"], first).append((x, row["nDCG"]))
        lines = {data: tuple(zip(*sorted(of), strict=True)) for data, of in points.items()}
        label = option + (", times" if option in MULTIPLES else "")
        drawn.append(Panel(label, "nDCG, %", lines, log="x", level=100))  # type: ignore[arg-type]
    return curves(drawn, legend=5, columns=3, height=2.0)[0]


EXPERIMENT = declared("constants", cases, tables, draw, then)
