"""`runtime`: seconds per epoch of every model, with the paper's solvers and with the library's."""

from typing import Any, NamedTuple

import numpy as np

from reproduction import curves, presets, published, variants
from reproduction.aggregate import Floats, collect
from reproduction.base import Cell, Experiment, Options, Result, Results, cells_of
from reproduction.page import Page, table
from safecf.models.presets import Preset

WARM_UP = 1
TIMED = {"ml-20m": 5, "msd": 2}  # epochs after the warm-up; other data as msd
BLOCK = 128
EXACT, ADAM, BATCHES = "exact", "one step of Adam", "Adam, by batches"
THEIRS = (EXACT, ADAM, BATCHES)  # the solvers of the paper's table
NAMES = ("iALS", "ERM-MF", "CVaR-MF", "SAFER2")
VAE = "Mult-VAE"
# Label and grey of each step.
STEPS = {
    "quantile": (r"$\xi$ and weights", "#000000"),
    "losses": ("losses", "#444444"),
    "rotate": ("rotations", "#777777"),
    "users": ("users", "#AAAAAA"),
    "items": ("items", "#E5E5E5"),
    "training": ("batches", "#FFFFFF"),
}
# By data set: models of which only the first epoch is timed, since it takes a minute.
SLOW = {"ml-20m": (VAE,), "msd": ("iALS, exact", "SAFER2, exact", "iALS++", "SAFER2++")}
# By data set: models that are left out, with the reasons.
LEFT_OUT = {
    "msd": {
        "ERM-MF, exact": "it takes as long as SAFER2, exact, and solves the same systems",
        VAE: "its epoch, with 16 times the work of one on ML-20M's shape, takes too long on a CPU",
    },
}


def timed_epochs(shape: str) -> int:
    """Return how many epochs of a model are timed after the warm-up."""
    return TIMED.get(shape, TIMED["msd"])


class Timed(NamedTuple):
    """A model by its name in the paper, with a solver and the number of warm-up epochs."""

    name: str
    solver: str
    preset: Preset
    warm_up: int
    theirs: float | None  # seconds in the paper, for this model and solver


def models(options: Options) -> dict[str, Timed]:
    """Return every model with each of its solvers, by the name of the preset."""
    shape = curves.shape_of(options.data)
    ials, erm, cvar, safer2 = presets.require(shape, "paper", NAMES, options.presets)
    vae = presets.load(shape, "paper", options.presets).get(VAE)
    planned = [
        ("iALS", EXACT, variants.exact(ials)),
        ("iALS", "spectral CG", ials),
        ("iALS++", f"blocks of {BLOCK}", variants.blockwise(ials, BLOCK)),
        ("ERM-MF", EXACT, variants.exact(erm)),
        ("ERM-MF", "spectral CG", erm),
        ("CVaR-MF", ADAM, variants.adam(cvar)),
        ("SAFER2", EXACT, variants.exact(safer2)),
        ("SAFER2", "spectral CG", safer2),
        ("SAFER2-CG", "CG, 5 steps", variants.cg(safer2)),
        ("SAFER2++", f"blocks of {BLOCK}", variants.blockwise(safer2, BLOCK)),
        *([(VAE, BATCHES, vae)] if vae else []),
    ]
    found = {}
    for name, solver, preset in planned:
        if preset.name not in LEFT_OUT.get(shape, {}):
            usual = WARM_UP, timed_epochs(shape)
            warm_up, timed = (0, 1) if preset.name in SLOW.get(shape, ()) else usual
            theirs = published.TABLE_2.get(shape, {}).get(name)
            some = variants.epochs(preset, warm_up + timed)
            found[preset.name] = Timed(
                name, solver, some, warm_up, theirs if solver in THEIRS else None
            )
    return found


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of all models; users are not scored."""
    return [
        (name, curves.cell(each.preset, options.data, scored=False))
        for name, each in models(options).items()
    ]


def render(results: Results, options: Options) -> Page:
    """Return the seconds per epoch of each model beside those of the paper."""
    known = models(options)
    found = {name: each for name, (each,) in collect(plan(options), results).items()}
    lines = []
    for name, each in known.items():
        seconds = curves.seconds(found[name])[each.warm_up :]
        middle, ends = np.median(seconds), f"{seconds.min():.2f} to {seconds.max():.2f}"
        theirs = "" if each.theirs is None else f"{each.theirs:g}"
        lines.append([each.name, each.solver, f"{middle:.2f}", ends, str(len(seconds)), theirs])
    shape, factors = curves.shape_of(options.data), known["SAFER2"].preset.options["factors"]
    left_out = LEFT_OUT.get(shape, {}).items()
    return Page(
        [
            f"Seconds per epoch at d = {factors}: losses, xi and weights, users and items. The "
            f"median of the {timed_epochs(shape)} epochs after the first; where there is only one, "
            "it is the first, since exact solves, of rows or of blocks, and steps by batches take "
            "the same time in every epoch. Spectral CG is the library's own solver and default. "
            "The settings are the authors', those of Mult-VAE by Liang et al. (2018).",
            table(["", "solver", "seconds", "range", "epochs", "the paper"], lines),
            _paper(shape),
            *(f"Left out: {name}, since {reason}." for name, reason in left_out),
        ],
        [
            {"model": each.name, "solver": each.solver, "epoch": epoch + 1, "step": step}
            | {"seconds": round(value, 5), "counts": epoch >= each.warm_up}
            for name, each in known.items()
            for step, values in found[name].record["seconds"].items()
            for epoch, value in enumerate(values)
        ],
        lambda: draw(found, known),
        "Seconds per epoch by step, and the paper's on its machine",
    )


def _paper(shape: str) -> str:
    if shape not in published.TABLE_2:
        return "The paper has no times for these data."
    return (
        f"The paper's machine: {published.RUNTIME_MACHINE}, where an epoch takes "
        f"{published.TABLE_2[shape][VAE]:g} seconds. The paper leaves out ERM-MF as nearly "
        "identical to iALS."
    )


def draw(found: dict[str, Result], known: dict[str, Timed]) -> Any:
    """Draw a stacked bar of the steps per model, and the seconds of the paper."""
    from reproduction.figures import panels  # noqa: PLC0415

    figure, (panel,) = panels(1, height=0.9 + 0.2 * len(found))
    figure.set_figwidth(5.5)
    names = [f"{each.name} ({each.solver})" for each in known.values()]
    left = np.zeros(len(names))
    for step, (label, grey) in STEPS.items():
        seconds = [found[name].record["seconds"].get(step) for name in known]
        times = [
            np.median(values[each.warm_up :]) if values else 0.0  # not all have all steps
            for values, each in zip(seconds, known.values(), strict=True)
        ]
        if any(times):
            style = {"color": grey, "edgecolor": "k", "linewidth": 0.4}
            panel.barh(names, times, left=left, label=label, **style)
        left += times
    theirs = [np.nan if each.theirs is None else each.theirs for each in known.values()]
    if not np.isnan(theirs).all():
        style = {"color": "#D55E00", "markerfacecolor": "none", "label": "the paper's machine"}
        panel.plot(theirs, names, "D", **style)
    _cut(panel, left, theirs)
    panel.set_xlabel("seconds per epoch")
    panel.grid(visible=False, axis="y")
    panel.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def _cut(panel: Any, totals: Floats, theirs: list[float]) -> None:
    """Cut the longest bar off, and write its length on it, if it is far longer than the others."""
    longest = int(np.argmax(totals))
    others = 1.3 * np.nanmax([*np.delete(totals, longest), *theirs])
    shown = min(others, 1.05 * np.nanmax([*totals, *theirs]))
    panel.set_xlim(0, shown)
    if totals[longest] > shown:
        text = rf"{totals[longest]:.1f} s $\rightarrow$"
        panel.text(0.99 * shown, longest, text, ha="right", va="center", fontsize="small")


EXPERIMENT = Experiment(
    "runtime",
    "Seconds per epoch",
    "Table 2, runtime per epoch",
    cells_of(plan),
    render,
    data=("ml-20m-like", "msd-like", "ml-20m", "msd"),
    alone=True,
)
