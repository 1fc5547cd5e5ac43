"""`frontier`: all models, equally well tuned, over the splits, and what SAFER2 gains then."""

from typing import Any

from safecf.experiments import presets, ratios
from safecf.experiments.aggregate import collect, heading, over_splits, rows
from safecf.experiments.base import Cell, Experiment, Options, Result, Results
from safecf.experiments.page import Page, table

COLUMNS = sorted(ratios.COLUMNS, key=lambda column: column[0])  # a metric, then its tail
TUNED = ("iALS", "ERM-MF", "CVaR-MF", "SAFER2", "SAFER2, rho = 1", "EASE", "Mult-VAE")
PAPER = ("iALS", "SAFER2")


def models(options: Options) -> dict[str, presets.Preset]:
    """Return the tuned models, and those of the paper to see how far we have come."""
    ours = presets.require(options.data, "tuned", TUNED, options.presets)
    theirs = presets.require(options.data, "paper", PAPER, options.presets)
    return {
        **{f"{each.name}, the paper's settings": each for each in theirs},
        **{each.name: each for each in ours},
    }


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return every model on every split, with its name."""
    return presets.on_all_splits(models(options), options)


def cells(options: Options) -> list[Cell]:
    """Return all cells."""
    return [cell for _, cell in plan(options)]


def render(results: Results, options: Options) -> Page:
    """Return the means over the splits, and what SAFER2 gains over each of the others."""
    found = collect(plan(options), results)
    lines = []
    for name, each in found.items():
        numbers = [over_splits(each, column) for column in COLUMNS]
        lines.append([name, *(f"{n.value:.4f} [{n.low:.4f}, {n.high:.4f}]" for n in numbers)])
    others = [name for name in found if name != "SAFER2"]
    settings = [
        [name, ", ".join(f"{key} {value}" for key, value in each.options.items()), each.found]
        for name, each in models(options).items()
    ]
    return Page(
        [
            f"Means over {options.splits} splits of the users, test users, with 95 % bootstrap "
            "intervals over the splits. Our settings were chosen by `tuning`, on the validation "
            "users of the paper's split. ERM-MF and SAFER2 also had their `normalisation` rho "
            "chosen; with rho = 1 the loss is the paper's.",
            table(["", *map(heading, COLUMNS)], lines),
            "What SAFER2 gains over the others on the same splits, in percent of the means, and "
            f"how many splits it wins. {ratios.INTERVALS}",
            ratios.summary(ratios.ratios(found, [("SAFER2", name) for name in others])),
            "The settings:",
            table(["", "options", "found"], settings),
        ],
        [row for name, each in found.items() for row in rows(name, each, COLUMNS)],
        lambda: draw(found),
        "Mean and tail of recall@20 over the splits, with 95 % intervals",
    )


def draw(found: dict[str, list[Result]]) -> Any:
    """Draw every model as a point, its mean against its tail, for both cutoffs."""
    from safecf.experiments.figures import look, panels  # noqa: PLC0415

    figure, axes = panels(2, height=2.9)
    for panel, (mean, tail) in zip(axes, (COLUMNS[:2], COLUMNS[2:]), strict=True):
        for place, (name, each) in enumerate(found.items()):
            x, y = over_splits(each, mean), over_splits(each, tail)
            drawn = look(place)
            panel.errorbar(
                x.value,
                y.value,
                xerr=[[x.value - x.low], [x.high - x.value]],
                yerr=[[y.value - y.low], [y.high - y.value]],
                label=name,
                color=drawn.color,
                marker=drawn.marker,
                linestyle="none",
                linewidth=0.8,
            )
        panel.set_xlabel(f"{heading(mean)}, mean of all users")
        panel.set_ylabel(f"{heading(mean)}, mean of the worst-off 30 %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


EXPERIMENT = Experiment(
    "frontier",
    "All models at their best, over the splits",
    "beyond it: the models of Table 1 with more factors, all tuned alike",
    cells,
    render,
    splits=50,
)
