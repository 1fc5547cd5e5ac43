"""One option changed at a time: `sensitivity` and `constants`.

`sensitivity` shows what each option of the tuned SAFER2 does for the mean and for the tail,
`constants` what each constant behind the defaults does, on data of many densities.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reproduction import presets, scores, settings
from reproduction.data import SEED, repeated_seeds
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves, lines_of
from reproduction.page import heading
from reproduction.tasks import quality
from safecf.als.kernels import KERNELS
from safecf.defaults import LEVEL
from safecf.evaluation import tail_mean

TUNED = settings("experiments/sensitivity")
COLUMNS = [("recall@20", 1.0), ("recall@20", 0.3)]
BASE = ("", None)  # the label of the preset itself
CHANGE = {"change": "gain", "low": "low", "high": "high"}

DEFAULTS = settings("experiments/constants")
ALL = {"R@20": ("recall@20", 1.0), "nDCG": ("ndcg", 1.0), "nDCG, worst-off 30 %": ("ndcg", LEVEL)}


def _changes(base: Mapping[str, Any]) -> dict[tuple[str, Any], dict[str, Any]]:
    """Return the options of the preset itself and of all changes, by option and value."""
    values = {**TUNED["values"]}
    for option, multiples in TUNED["multiples"].items():
        values[option] = [float(f"{base[option] * times:.3g}") for times in multiples]
    found: dict[tuple[str, Any], dict[str, Any]] = {BASE: dict(base)}
    for option, chosen in {**values, "kernel": list(KERNELS)}.items():
        for value in chosen:
            if value != base[option]:
                found[option, value] = {**base, option: value}
                if option == "kernel":  # the same standard deviation
                    ratio = KERNELS[base["kernel"]].deviation / KERNELS[value].deviation
                    found[option, value]["bandwidth"] = float(f"{base['bandwidth'] * ratio:.3g}")
    return found


def _option_cases(options: Options) -> list[Case]:
    """Return every change on every split, with validation users scored."""
    preset = presets.load(options.data, "tuned")["SAFER2"]
    changes = {name: replace(preset, options=of) for name, of in _changes(preset.options).items()}
    return [
        Case(quality, presets.settings(each, options.data, split, on="validation"), label)
        for split in repeated_seeds(options.splits)
        for label, each in changes.items()
    ]


def _option_tables(results: list[Result], options: Options) -> Tables:
    """Return the gain by each change, and lines of a value each, where the preset's has a mark."""
    found = grouped(results)
    known = scores.evaluations(found)
    base = results[0].settings["options"]
    own = dict(zip(("mean", "tail_mean"), (known[BASE].tail(*of) for of in COLUMNS), strict=True))
    numbers: list[Row] = []
    lines: dict[str, list[Row]] = {}
    for label in (each for each in found if each != BASE):
        option, value = label
        unchanged = {"option": option, "value": base[option], "mark": "**", **own}
        lines.setdefault(option, [unchanged])
        line: Row = {"option": option, "value": value, "mark": ""}
        gains = scores.gains(known, [(label, BASE)], COLUMNS)
        for row, prefix in zip(gains, ("", "tail_"), strict=True):
            mean = {"mean": known[label].tail(row["metric"], row["tail"])}
            more = {"metric": row["metric"], "tail": row["tail"], **mean}
            more |= {"change in percent": row["gain"], "low": row["low"], "high": row["high"]}
            numbers.append({"option": option, "value": value, **more})
            line |= {f"{prefix}{name}": row[of] for name, of in CHANGE.items()}
            line[f"{prefix}mean"] = mean["mean"]
        lines[option].append(line)
    ordered = [row for of in lines.values() for row in sorted(of, key=lambda row: row["value"])]
    for row in ordered:
        row["text"] = row["value"] if isinstance(row["value"], str) else f"{row['value']:g}"
    return {"numbers": numbers, "preset": [base], "lines": ordered}


def _draw_options(tables: Tables) -> Any:
    drawn = []
    for option in (*TUNED["values"], *TUNED["multiples"]):
        rows = [row for row in tables["lines"] if row["option"] == option]
        values = [row["value"] for row in rows]
        lines: Row = {}
        bars: Row = {}
        for column, prefix in zip(COLUMNS, ("", "tail_"), strict=True):
            change, *ends = ([row.get(prefix + name, 0.0) for row in rows] for name in CHANGE)
            lines[heading(*column)], bars[heading(*column)] = (values, change), tuple(ends)
        scale = {"log": "" if option == "tail" else "x", "at": tables["preset"][0][option]}
        drawn.append(Panel(option, "change, %", lines, bars=bars, **scale))
    return curves(drawn, legend=2, columns=3, height=2.0)[0]


SENSITIVITY = declared("sensitivity", _option_cases, _option_tables, _draw_options)


def _case(data: str, model: str, option: str = "", value: float = 0, change: str = "") -> Case:
    """Return the case of the defaults, or of one change, for the validation users."""
    about = {"data": data, "split": SEED, "on": "validation", "seed": 0, "model": model}
    more = {"options": {option: value} if option else {}, "metrics": ["recall", "ndcg"]}
    return Case(quality, {**about, **more}, (data, model, option, value, change))


def _cases(options: Options) -> list[Case]:
    """Return the defaults on all data."""
    return [_case(data, model) for data in DEFAULTS[options.data] for model in DEFAULTS["models"]]


def _then(results: list[Result], options: Options) -> list[Case]:
    """Return the changes, given the results of the defaults."""
    found = []
    for start in results[: len(_cases(options))]:
        (data, model, *_), resolved = start.label, start.record["resolved"]
        for option, multiples in DEFAULTS["multiples"].items():
            for times in multiples if option in resolved else ():
                value = float(f"{times * resolved[option]:.4g}")
                found.append(_case(data, model, option, value, f"x {times:g}"))
        for option, values in DEFAULTS["values"].items():
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
    drawn = []
    for option in (*DEFAULTS["multiples"], *DEFAULTS["values"]):
        rows = [
            {**row, "x": float(str(row["change"]).removeprefix("x "))}
            for row in tables["numbers"]
            if (row["model"], row["option"]) == ("SAFER2", option)
        ]
        if option in DEFAULTS["multiples"]:
            rows += [{"data": data, "x": 1.0, "nDCG": 100.0} for data in grouped(rows, "data")]
        label = option + (", times" if option in DEFAULTS["multiples"] else "")
        lines = lines_of(sorted(rows, key=lambda row: row["x"]), "data", "x", "nDCG")
        drawn.append(Panel(label, "nDCG, %", lines, log="x", level=100))
    return curves(drawn, legend=5, columns=3, height=2.0)[0]


CONSTANTS = declared("constants", _cases, _tables, _draw, _then)
