"""`constants`: each constant behind the defaults changed by itself, on data of many densities."""

from typing import Any

import numpy as np

from reproduction import settings
from reproduction.data import SEED
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves, lines_of
from reproduction.tasks import quality
from safecf.defaults import LEVEL
from safecf.evaluation import tail_mean

DATA = settings("experiments/constants")
ALL = {"R@20": ("recall@20", 1.0), "nDCG": ("ndcg", 1.0), "nDCG, worst-off 30 %": ("ndcg", LEVEL)}


def _case(data: str, model: str, option: str = "", value: float = 0, change: str = "") -> Case:
    """Return the case of the defaults, or of one change, for the validation users."""
    about = {"data": data, "split": SEED, "on": "validation", "seed": 0, "model": model}
    more = {"options": {option: value} if option else {}, "metrics": ["recall", "ndcg"]}
    return Case(quality, {**about, **more}, (data, model, option, value, change))


def _cases(options: Options) -> list[Case]:
    """Return the defaults on all data."""
    return [_case(data, model) for data in DATA[options.data] for model in DATA["models"]]


def _then(results: list[Result], options: Options) -> list[Case]:
    """Return the changes, given the results of the defaults."""
    found = []
    for start in results[: len(_cases(options))]:
        (data, model, *_), resolved = start.label, start.record["resolved"]
        for option, multiples in DATA["multiples"].items():
            for times in multiples if option in resolved else ():
                value = float(f"{times * resolved[option]:.4g}")
                found.append(_case(data, model, option, value, f"x {times:g}"))
        for option, values in DATA["values"].items():
            found += [_case(data, model, option, value, f"{value:g}") for value in values]
    return found


def _tables(results: list[Result], options: Options) -> Tables:
    """Return the defaults, and every change in percent of them."""
    numbers, starts = [], []
    base: dict[tuple[str, str], Row] = {}
    for (data, model, option, value, change), (result,) in grouped(results).items():
        row: Row = {"data": data, "model": model}
        seen = {name: tail_mean(result.record[of], level) for name, (of, level) in ALL.items()}
        if option:
            row |= {"option": option, "value": value, "change": change}
            before = base[data, model]
            numbers.append(
                row | {n: 100 * each / (before[n] or np.nan) for n, each in seen.items()}
            )
        else:
            base[data, model] = seen
            starts.append({**row, **seen, **result.record["resolved"]})
    return {"numbers": numbers, "starts": starts}


def _draw(tables: Tables) -> Any:
    """Draw a panel per option of SAFER2, a line per data set."""
    drawn = []
    for option in (*DATA["multiples"], *DATA["values"]):
        rows = [
            {**row, "x": float(str(row["change"]).removeprefix("x "))}
            for row in tables["numbers"]
            if (row["model"], row["option"]) == ("SAFER2", option)
        ]
        if option in DATA["multiples"]:
            rows += [{"data": data, "x": 1.0, "nDCG": 100.0} for data in grouped(rows, "data")]
        label = option + (", times" if option in DATA["multiples"] else "")
        lines = lines_of(sorted(rows, key=lambda row: row["x"]), "data", "x", "nDCG")
        drawn.append(Panel(label, "nDCG, %", lines, log="x", level=100))
    return curves(drawn, legend=5, columns=3, height=2.0)[0]


EXPERIMENT = declared("constants", _cases, _tables, _draw, _then)
