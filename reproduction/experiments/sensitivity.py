"""`sensitivity`: the effect of each option of the tuned SAFER2 on the mean and on the tail."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reproduction import presets, scores, settings
from reproduction.data import repeated_seeds
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves
from reproduction.page import heading
from reproduction.tasks import quality
from safecf.als.kernels import KERNELS

DATA = settings("experiments/sensitivity")
COLUMNS = [("recall@20", 1.0), ("recall@20", 0.3)]
BASE = ("", None)  # the label of the preset itself
CHANGE = {"change": "gain", "low": "low", "high": "high"}


def _changes(base: Mapping[str, Any]) -> dict[tuple[str, Any], dict[str, Any]]:
    """Return the options of the preset itself and of all changes, by option and value."""
    values = {**DATA["values"]}
    for option, multiples in DATA["multiples"].items():
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


def _cases(options: Options) -> list[Case]:
    """Return every change on every split, with validation users scored."""
    (preset,) = presets.require(options.data, "tuned", ("SAFER2",))
    changes = {name: replace(preset, options=of) for name, of in _changes(preset.options).items()}
    return [
        Case(quality, presets.settings(each, options.data, split, on="validation"), label)
        for split in repeated_seeds(options.splits)
        for label, each in changes.items()
    ]


def _tables(results: list[Result], options: Options) -> Tables:
    """Return the gain by each change, and lines of a value each, where the preset's has a mark."""
    found = grouped(results)
    known = scores.evaluations(found)
    base = results[0].settings["options"]
    own = dict(zip(("mean", "tail_mean"), (known[BASE].tail(*of) for of in COLUMNS), strict=True))
    numbers: list[Row] = []
    lines: dict[str, list[Row]] = {}
    for label in found:
        option, value = label
        if label == BASE:
            continue
        if option not in lines:
            lines[option] = [{"option": option, "value": base[option], "mark": "**", **own}]
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


def _draw(tables: Tables) -> Any:
    """Draw the change of the mean and that of the tail, a panel per option."""
    drawn = []
    for option in (*DATA["values"], *DATA["multiples"]):
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


EXPERIMENT = declared("sensitivity", _cases, _tables, _draw)
