"""`sensitivity`: the effect of each option of the tuned SAFER2 on the mean and on the tail."""

from collections.abc import Mapping, Sequence
from typing import Any

from reproduction import presets, scores
from reproduction.data import repeated_seeds
from reproduction.experiment import TINY, Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.page import heading
from reproduction.tasks import quality
from safecf.als.kernels import KERNELS

COLUMNS = [("recall@20", 1.0), ("recall@20", 0.3)]
BASE = ("", None)  # the label of the preset itself
# Values that replace that of the preset.
VALUES: dict[str, tuple[Any, ...]] = {
    "tail": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    "factors": (32, 64, 128, 256, 512, 1024),
    "iterations": (5, 10, 15, 20, 30, 50),
}
# Multiples of the preset's value, for other options.
MULTIPLES = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
MULTIPLIED = ("bandwidth", "unobserved_weight", "regularization")


def changes(base: Mapping[str, Any], data: str) -> dict[tuple[str, Any], dict[str, Any]]:
    """Return the options of the preset itself and of all changes, by option and value."""
    values = dict(VALUES)
    if data == TINY:
        values |= {"factors": (2, 3), "iterations": (2, 3)}
    values |= {
        name: tuple(float(f"{base[name] * m:.3g}") for m in MULTIPLES) for name in MULTIPLIED
    }
    found: dict[tuple[str, Any], dict[str, Any]] = {BASE: dict(base)}
    for option, chosen in {**values, "kernel": tuple(KERNELS)}.items():
        for value in chosen:
            if value != base[option]:
                found[option, value] = {**base, option: value}
                if option == "kernel":  # the same standard deviation
                    ratio = KERNELS[base["kernel"]].deviation / KERNELS[value].deviation
                    found[option, value]["bandwidth"] = float(f"{base['bandwidth'] * ratio:.3g}")
    return found


def cases(options: Options) -> list[Case]:
    """Return every change on every split, with validation users scored."""
    (preset,) = presets.require(options.data, "tuned", ("SAFER2",), options.presets)
    return [
        Case(
            quality,
            {**presets.settings(preset, options.data, split, 0, "validation"), "options": changed},
            label,
        )
        for split in repeated_seeds(options.splits)
        for label, changed in changes(preset.options, options.data).items()
    ]


def tables(results: list[Result], options: Options) -> Tables:
    """Return the gain by each change."""
    found = grouped(results)
    known = scores.evaluations(found)
    base = results[0].settings["options"]
    gains = scores.gains(known, [(each, BASE) for each in found if each != BASE], COLUMNS)
    labels = [each for each in found if each != BASE for _ in COLUMNS]
    numbers = [
        {"option": option, "value": value, "metric": row["metric"], "tail": row["tail"]}
        | {"mean": known[option, value].tail(row["metric"], row["tail"])}
        | {"change in percent": row["gain"], "low": row["low"], "high": row["high"]}
        for (option, value), row in zip(labels, gains, strict=True)
    ]
    means = [known[BASE].tail(*column) for column in COLUMNS]
    return {"numbers": numbers, "preset": [base], "lines": lines(numbers, base, means)}


def lines(numbers: Sequence[Row], base: Mapping[str, Any], means: Sequence[float]) -> list[Row]:
    """Return a row per value of an option, in order; that of the preset has a mark."""
    found = []
    for option in dict.fromkeys(row["option"] for row in numbers):
        own = {"option": option, "value": base[option], "mark": "**"}
        rows = [own | {"mean": means[0], "tail_mean": means[1]}]
        chosen = [row for row in numbers if row["option"] == option]
        for mean, tail in zip(chosen[::2], chosen[1::2], strict=True):
            row = {"option": option, "value": mean["value"], "mark": "", "mean": mean["mean"]}
            row |= {name: mean[of] for name, of in _NAMES.items()}
            row |= {f"tail_{name}": tail[of] for name, of in {**_NAMES, "mean": "mean"}.items()}
            rows.append(row)
        texts = ({"text": v if isinstance(v := row["value"], str) else f"{v:g}"} for row in rows)
        texted = [row | text for row, text in zip(rows, texts, strict=True)]
        found += sorted(texted, key=lambda row: row["value"])
    return found


_NAMES = {"change": "change in percent", "low": "low", "high": "high"}


def draw(tables: Tables) -> Any:
    """Draw the change of the mean and that of the tail, a panel per option."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    drawn = []
    for option in (*VALUES, *MULTIPLIED):
        rows = [row for row in tables["lines"] if row["option"] == option]
        values = [row["value"] for row in rows]
        lines: Row = {}
        bars: Row = {}
        for column, prefix in zip(COLUMNS, ("", "tail_"), strict=True):
            change, *ends = ([row.get(prefix + n, 0.0) for row in rows] for n in _NAMES)
            lines[heading(*column)], bars[heading(*column)] = (values, change), tuple(ends)
        scale = {"log": "" if option == "tail" else "x", "at": tables["preset"][0][option]}
        drawn.append(Panel(option, "change, %", lines, bars=bars, **scale))
    return curves(drawn, legend=2, columns=3, height=2.0)[0]


EXPERIMENT = declared("sensitivity", cases, tables, draw)
