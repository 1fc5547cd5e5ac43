"""`walltime`: quality of models by epochs and by seconds of training."""

from dataclasses import replace
from typing import Any

from reproduction import curves, presets, variants
from reproduction.aggregate import collect, heading
from reproduction.base import Cell, Experiment, Options, Result, Results, cells_of
from reproduction.curves import Curve
from reproduction.page import Page, table
from reproduction.profiles import quality_columns
from safecf.models.presets import Preset

NAMES = ("iALS", "ERM-MF", "CVaR-MF", "SAFER2")  # published for all data sets
ALSO = ("iALS++", "SAFER2++", "Mult-VAE")  # published for some
# On synthetic data.
BLOCK = 128
EXACT_EPOCHS, EPOCHS, GRADIENT_EPOCHS = 4, 10, 50
SHOWN = 0.7  # the share of the best recall at which the axes begin
SAME = ("unobserved_weight", "regularization")

Found = dict[str, list[Result]]


def models(options: Options) -> list[Preset]:
    """Return all models where quality is measured, else those with the same losses as SAFER2."""
    shape = curves.shape_of(options.data)
    known = presets.require(shape, "paper", NAMES, options.presets)
    if curves.has_quality(options.data):
        some = presets.load(shape, "paper", options.presets)
        adam = variants.adam(known[NAMES.index("CVaR-MF")])
        return [*known, adam, *(some[name] for name in ALSO if name in some)]
    _, erm, cvar, safer2 = known
    same = {name: safer2.options[name] for name in SAME}
    erm, cvar = (replace(each, options={**each.options, **same}) for each in (erm, cvar))
    return [
        variants.epochs(safer2, EPOCHS),
        variants.epochs(variants.exact(safer2), EXACT_EPOCHS),
        variants.epochs(variants.cg(safer2), EPOCHS),
        variants.epochs(variants.blockwise(safer2, BLOCK), EPOCHS),
        variants.epochs(erm, EPOCHS),
        variants.epochs(variants.adam(cvar), GRADIENT_EPOCHS),
    ]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of all models with all seeds, or with one if users are not scored."""
    scored = curves.has_quality(options.data)
    return [
        (each.name, curves.cell(each, options.data, seed, scored=scored))
        for each in models(options)
        for seed in presets.seeds(each, options.seeds if scored else 1)
    ]


def render(results: Results, options: Options) -> Page:
    """Return recall, or the CVaR of the training losses, by epochs and by seconds."""
    found = collect(plan(options), results)
    blocks = _quality(found, options) if curves.has_quality(options.data) else _losses(found)
    return Page(
        blocks,
        [
            row
            for name, runs in found.items()
            for each in runs
            for row in curves.rows({"model": name}, each)
        ],
        lambda: draw(drawn_curves(found, options)),
        "By epochs (left) and by seconds (right)",
    )


def drawn_curves(found: Found, options: Options) -> dict[str, dict[str, Curve]]:
    """Return the curves of all models, by the label of the axis."""
    if curves.has_quality(options.data):
        return {
            f"validation {heading(column)}": {
                name: curves.recall(runs, column) for name, runs in found.items()
            }
            for column in quality_columns(options.data)
        }
    loss = {name: curves.history(runs[0], "cvar") for name, runs in found.items()}
    return {"CVaR of training losses": loss}


def _quality(found: Found, options: Options) -> list[str]:
    columns = quality_columns(options.data)
    lines = []
    for name, runs in found.items():
        curve = curves.recall(runs, columns[0])
        there = curve.converged
        pace = sum(curves.median_seconds(each) for each in runs) / len(runs)
        best = [curves.recall(runs, column).values.max() for column in columns]
        reached = [str(curve.epochs[there]), f"{curve.seconds[there]:.2f}"]
        lines.append([name, f"{pace:.4f}", *reached, *map(float, best)])
    near = f"{curves.NEAR:.0%} of its best {heading(columns[0])}"
    return [
        f"Recall of the validation users after each epoch, means over {options.seeds} starts; "
        "scoring does not count as time. All models ran alone, one after another, with all cores "
        "of the same CPU; those with rows to solve use spectral CG, except for those by blocks. "
        f"The table tells how soon a model has {near}, and the best that its curves reach. CVaR-MF "
        f"with Adam has a step of {variants.ADAM_STEP:g}; the other settings are those of "
        "`table-1`.",
        table(
            ["", "seconds per epoch", "epochs to 99 %", "seconds to 99 %"]
            + [f"best {heading(column)}" for column in columns],
            lines,
        ),
        "The paper's figure is for ML-20M and MSD, without numbers. It says that iALS and SAFER2 "
        "converge with around 10 epochs, and that CVaR-MF has not converged with 50, even with "
        "Adam.",
    ]


def _losses(found: Found) -> list[str]:
    lines = []
    for name, (result,) in found.items():
        loss = curves.history(result, "cvar")
        times = [
            f"{curves.median_seconds(result):.2f}",
            str(len(loss.epochs)),
            f"{loss.seconds[-1]:.1f}",
        ]
        lines.append([name, *times, float(loss.values[-1])])
    return [
        "Synthetic users have no quality. What is shown is the CVaR of the training users' losses, "
        "the mean of the worst 30 %, which SAFER2 smooths, CVaR-MF takes as it is, and ERM-MF "
        "does not care for. All have the settings of SAFER2, so that they have the same losses; "
        "iALS has others, and is in `runtime`. All ran alone, with all cores of the same CPU.",
        table(["", "seconds per epoch", "epochs", "seconds", "CVaR at the end"], lines),
    ]


def draw(found: dict[str, dict[str, Curve]]) -> Any:
    """Draw a row of panels per quantity: by epochs, and by seconds."""
    from reproduction.figures import line_styles, log_ticks, panels  # noqa: PLC0415

    figure, axes = panels(2 * len(found), height=2.3, sharey="row")
    styles = line_styles(next(iter(found.values())))
    for (what, each), left, right in zip(found.items(), axes[::2], axes[1::2], strict=True):
        for name, curve in each.items():
            style = {"label": name, "markevery": 0.15, **styles[name]._asdict()}
            left.plot(curve.epochs, curve.values, **style)
            right.plot(curve.seconds, curve.values, **style)
        best = max(curve.values.max() for curve in each.values())
        if what.startswith("validation"):
            left.set_ylim(SHOWN * best, best + 0.1 * (1 - SHOWN) * best)
        left.set(xlabel="epochs", ylabel=what)
        right.set(xlabel="seconds of training")
        for panel in (left, right):
            log_ticks(panel.xaxis)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


EXPERIMENT = Experiment(
    "walltime",
    "Ranking quality by epochs and by seconds",
    'figure "ranking quality vs. training epochs/wall time"',
    cells_of(plan),
    render,
    data=("ml-1m", "ml-20m-like", "msd-like", "ml-20m", "msd"),
    seeds=3,
    alone=True,
)
