"""`sensitivity`: the effect of each option of the tuned SAFER2 on the mean and on the tail."""

from typing import Any, NamedTuple

from reproduction import presets, ratios
from reproduction.aggregate import Gain, collect, gain, heading, samples
from reproduction.base import Cell, Experiment, Options, Results, cells_of
from reproduction.data import repeated_seeds
from reproduction.page import Page, table
from reproduction.tasks.quality import quality
from safecf.als.kernels import KERNELS
from safecf.models.presets import Preset

NAME = "SAFER2"
COLUMNS = [column for column in ratios.COLUMNS if column[0] == "recall@20"]

# Values that replace that of the preset.
VALUES: dict[str, tuple[Any, ...]] = {
    "tail": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    "factors": (32, 64, 128, 256, 512, 1024),
    "iterations": (5, 10, 15, 20, 30, 50),
}
# Multiples of the preset's value, for other options.
MULTIPLES = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
MULTIPLIED = ("bandwidth", "unobserved_weight", "regularization")


class Change(NamedTuple):
    """One option with another value; option None is the preset itself."""

    option: str | None
    value: Any

    def applied(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with the change, and a bandwidth that fits another kernel."""
        if self.option is None:
            return options
        changed = {**options, self.option: self.value}
        if self.option == "kernel":
            width = options["bandwidth"] * _deviation(options["kernel"]) / _deviation(self.value)
            changed["bandwidth"] = float(f"{width:.3g}")
        return changed


def changes(preset: Preset, options: Options) -> list[Change]:
    """Return the preset itself, and all changes of one option."""
    found = [Change(None, None)]
    for option, values in VALUES.items():
        small = options.data == "tiny" and option != "tail"
        found += [Change(option, value) for value in ((2, 3) if small else values)]
    for option in MULTIPLIED:
        base = preset.options[option]
        found += [Change(option, float(f"{base * each:.3g}")) for each in MULTIPLES]
    found += [Change("kernel", kernel) for kernel in KERNELS]
    return [each for each in found if each.option is None or not _same(preset, each)]


def _deviation(kernel: str) -> float:
    return KERNELS[kernel].deviation


def _same(preset: Preset, change: Change) -> bool:
    return bool(preset.options[str(change.option)] == change.value)


def _preset(options: Options) -> Preset:
    return presets.require(options.data, "tuned", (NAME,), options.presets)[0]


def plan(options: Options) -> list[tuple[Change, Cell]]:
    """Return the cells of every change on every split, with validation users scored."""
    preset = _preset(options)
    planned = []
    for split in repeated_seeds(options.splits):
        for change in changes(preset, options):
            settings = presets.settings(preset, options.data, split, 0, on="validation")
            settings["options"] = change.applied(preset.options)
            planned.append((change, Cell(quality, settings)))
    return planned


def render(results: Results, options: Options) -> Page:
    """Return a table per option, and the curves."""
    preset = _preset(options)
    found = collect(plan(options), results)
    base = Change(None, None)
    known = [samples(found, column) for column in COLUMNS]
    means = {change: [float(each[change].values.mean()) for each in known] for change in found}
    gains = {
        change: [gain(each[base], each[change]) for each in known]
        for change in found
        if change.option is not None
    }
    blocks = [
        f"The tuned SAFER2 ({presets.options_text(preset.options)}) with one "
        f"option changed, on {options.splits} splits, for their validation users. Most of them are "
        "test users of other splits: this is for understanding, not for choosing. Changes are "
        "those of the means, in percent. The other options are not tuned again, though some make "
        "up for each other: another tail level has other weights, and wants another "
        "regularization. The 95 % intervals draw users, each with all their "
        "appearances. Another kernel has the bandwidth with which its spread is the same. "
        "`normalisation` is left out, since it changes the scale of other options; `frontier` has "
        "SAFER2 tuned with and without it."
    ]
    for option in dict.fromkeys(change.option for change in gains):
        chosen = {change: each for change, each in gains.items() if change.option == option}
        lines = [_line(preset.options[str(option)], means[base], None)]
        lines += [_line(c.value, means[c], each) for c, each in chosen.items()]
        header = [
            str(option),
            *map(heading, COLUMNS),
            *(f"change of {heading(c)}" for c in COLUMNS),
        ]
        lines.sort(key=_order)
        blocks.append(table(header, lines))
    return Page(
        blocks,
        [
            {"option": str(c.option), "value": c.value, "metric": metric, "tail": level}
            | {"mean": mean}
            | {"change in percent": each.value, "low": each.users[0], "high": each.users[1]}
            for c, pair in gains.items()
            for (metric, level), mean, each in zip(COLUMNS, means[c], pair, strict=True)
        ],
        lambda: draw(preset, gains),
        "Change of recall@20, of all users and of the worst-off 30 %, by option",
    )


def _line(value: Any, numbers: list[float], gains: list[Gain] | None) -> list[str]:
    means = [f"{each:.4f}" for each in numbers]
    if gains is None:
        return [f"**{_text(value)}**", *means, *("" for _ in COLUMNS)]
    changes = [f"{g.value:+.1f} % [{g.users[0]:+.1f}, {g.users[1]:+.1f}]" for g in gains]
    return [_text(value), *means, *changes]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _order(line: list[str]) -> tuple[float, str]:
    value = line[0].strip("*")
    return (0.0, value) if value in KERNELS else (float(value), "")


def draw(preset: Preset, gains: dict[Change, list[Gain]]) -> Any:
    """Draw the change of the mean and that of the tail, a panel per option."""
    from reproduction.figures import error_bars, line_style, log_ticks, panels  # noqa: PLC0415

    names = [*VALUES, *MULTIPLIED]
    figure, axes = panels(len(names), columns=3, height=2.0)
    for option, panel in zip(names, axes, strict=True):
        for place, column in enumerate(COLUMNS):
            points = {c.value: each[place] for c, each in gains.items() if c.option == option}
            points[preset.options[option]] = Gain(0.0, (0.0, 0.0), (0.0, 0.0), 0.0)
            values = sorted(points)
            line = line_style(place)
            heights = [points[v].value for v in values]
            ends = error_bars(heights, *zip(*(points[v].users for v in values), strict=True))
            panel.errorbar(
                values,
                heights,
                yerr=ends,
                label=heading(column),
                linewidth=0.8,
                **line._asdict(),
            )
        panel.axvline(preset.options[option], color="#7F7F7F", linestyle=":", linewidth=0.8)
        if option == "factors":
            panel.set_xscale("log", base=2)
            panel.set_xticks(values, [str(value) for value in values])
            panel.minorticks_off()
        elif option != "tail":
            log_ticks(panel.xaxis)
        panel.set_xlabel(option)
        panel.set_ylabel("change, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


EXPERIMENT = Experiment(
    "sensitivity",
    "What each option of SAFER2 does for the tail",
    "none; the options of SAFER2, one at a time",
    cells_of(plan),
    render,
    splits=5,
)
