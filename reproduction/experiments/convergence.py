"""Quality and residuals by epochs and seconds, of models, solvers, and options of the xi step.

`walltime` and `dimensions` have the clock; `bandwidth`, `sampling` and `xi-steps` are profiles of
SAFER2 with some options changed, which convergence.toml has.
"""

import math
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import presets, published
from reproduction.data import RECIPES
from reproduction.experiment import TINY, Case, Options, Result, Row, Tables
from reproduction.experiments import declared
from reproduction.page import heading
from reproduction.published import Column
from reproduction.tasks import course
from safecf.models.presets import Preset

Floats = NDArray[np.float64]
Run = dict[str, Floats]  # a column's values by epoch; NaN where there is none
Runs = dict[Any, list[Run]]  # the starts of each curve, by its name
Curve = tuple[Floats, Floats, Floats]  # epochs, seconds and values

DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))
EVERY, THEN = 50, 10  # users are scored after every epoch up to this one, then after every tenth
NEAR = 0.99  # the share of its best recall at which a model counts as converged
RESIDUALS = {
    "residual_users": r"$\Vert \Delta U\Vert$",
    "residual_items": r"$\Vert \Delta V\Vert$",
    "residual_weights": r"$\Vert \Delta z\Vert$",
}
# Columns of a model's history; Mult-VAE has the objective only.
HISTORY = ("objective", "cvar", "mean_weight", *RESIDUALS)


def has_quality(data: str) -> bool:
    """Whether recall is meaningful: not on synthetic data, save "tiny", which tries the code."""
    return data == TINY or data not in RECIPES


def shape_of(data: str) -> str:
    """Return the data set whose shape synthetic data have, and whose presets they use.

    >>> shape_of("msd-like")
    'msd'
    """
    return data.removesuffix("-like")


def course_cases(
    label: Any, preset: Preset, options: Options, seeds: int | None = None, *, scored: bool = True
) -> list[Case]:
    """Return the cases of a model on the paper's split, with validation users scored or not."""
    last = int(preset.options["iterations"])
    looks = [epoch for epoch in range(1, last + 1) if epoch <= EVERY or epoch % THEN == 0]
    found = []
    for seed in presets.seeds(preset, options.seeds if seeds is None else seeds):
        about = presets.settings(preset, options.data, seed=seed, on="validation")
        found.append(Case(course, {**about, "looks": looks if scored else []}, label))
    return found


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """Return the paper's measure, for all users and the worst-off 30 %; none if none is scored."""
    known = [metric for metric in ("recall@20", "recall@50") if f"{metric}, tail 1" in rows[0]]
    return [(metric, level) for metric in known[:1] for level in (1.0, 0.3)]


def numbers(results: list[Result], names: Sequence[str], *, timed: bool) -> list[Row]:
    """Return a row per epoch; `names` are those of the parts of a label."""
    found = []
    for each in results:
        label = each.label if isinstance(each.label, tuple) else (each.label,)
        about = {**dict(zip(names, label, strict=True)), "seed": each.settings["seed"]}
        metric = published.columns(each.settings["data"])[0][0]
        clock = 0.0
        for epoch, row in enumerate(each.record["rows"], 1):
            clock += sum(row["seconds"].values())
            seconds = {"seconds": round(clock, 4)} if timed else {}
            history = {name: row.get(name) for name in HISTORY}
            recalls = {name: value for name, value in row.items() if name.startswith(metric)}
            found.append({**about, "epoch": epoch, **seconds, **history, **recalls})
    return found


def runs_of(rows: Sequence[Row], names: Sequence[str]) -> Runs:
    """Return the columns of all runs by label; a label of one part is that part."""
    found: dict[Any, dict[int, list[Row]]] = {}
    for row in rows:
        label = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        found.setdefault(label, {}).setdefault(row["seed"], []).append(row)
    columns = [name for name in rows[0] if name not in names]

    def arrays(run: list[Row]) -> Run:
        return {n: np.array([row.get(n, None) for row in run], dtype=float) for n in columns}

    return {label: [arrays(run) for run in seeds.values()] for label, seeds in found.items()}


def recall(runs: Sequence[Run], column: Column) -> Curve:
    """Return the mean over the starts, up to the epoch in which the first of them ended."""
    name = f"{column[0]}, tail {column[1]:g}"
    seen = [np.isfinite(run[name]) for run in runs]
    size = min(map(np.count_nonzero, seen))
    first, *_ = kept = [
        [run.get(each, run["epoch"])[ok][:size] for each in ("epoch", "seconds", name)]
        for run, ok in zip(runs, seen, strict=True)
    ]
    epochs, seconds, values = np.mean(kept, axis=0) if size else first
    return epochs, seconds, values


def paces(rows: Sequence[Row], names: Sequence[str], warm_up: int = 0) -> list[Row]:
    """Return a row per model: how long an epoch takes, how it ends, and how soon recall is there.

    The first epochs, `warm_up`, do not count for the median of seconds.
    """
    found, columns = [], columns_of(rows)
    for label, runs in runs_of(rows, names).items():
        first = runs[0]
        pace = [np.median(np.diff(run["seconds"], prepend=0)[warm_up:]) for run in runs]
        row = dict(zip(names, label if len(names) > 1 else (label,), strict=True))
        row |= {"pace": float(np.mean(pace)), "epochs": len(first["epoch"])}
        row |= {name: float(first[name][-1]) for name in ("seconds", "objective", "cvar")}
        if columns:
            (epochs, seconds, values), tail = (recall(runs, column) for column in columns)
            there = int(np.argmax(values >= NEAR * values.max()))
            row |= {"to_epochs": int(epochs[there]), "to_seconds": float(seconds[there])}
            row |= {"best": float(values.max()), "best_tail": float(tail[2].max())}
        found.append(row)
    return found


# walltime

NAMES = ("iALS", "ERM-MF", "CVaR-MF", "SAFER2")  # published for all data sets
ALSO = ("iALS++", "SAFER2++", "Mult-VAE")  # published for some
BLOCK = 128  # on synthetic data
SHOWN = 0.7  # the share of the best recall at which the axes begin


def walltime_cases(options: Options) -> list[Case]:
    """Return all models where quality is measured, else those with the same losses as SAFER2."""
    shape, scored = shape_of(options.data), has_quality(options.data)
    known = presets.require(shape, "paper", NAMES, options.presets)
    _, erm, cvar, safer2 = known
    if scored:
        some = presets.load(shape, "paper", options.presets)
        chosen = [*known, presets.adam(cvar), *(some[name] for name in ALSO if name in some)]
    else:
        same = {name: safer2.options[name] for name in ("unobserved_weight", "regularization")}
        epochs = [
            (safer2, 10),
            (presets.exact(safer2), 4),
            (presets.cg(safer2), 10),
            (presets.blockwise(safer2, BLOCK), 10),
            (presets.changed(erm, **same), 10),
            (presets.adam(presets.changed(cvar, **same)), 50),
        ]
        chosen = [presets.changed(each, iterations=count) for each, count in epochs]
    seeds = None if scored else 1
    found = [course_cases(each.name, each, options, seeds, scored=scored) for each in chosen]
    return [case for cases in found for case in cases]


def walltime(results: list[Result], options: Options) -> Tables:
    """Return the curves, and how soon each model is there."""
    rows = numbers(results, ["model"], timed=True)
    return {"numbers": rows, "paces": paces(rows, ["model"])}


def draw_walltime(tables: Tables) -> Any:
    """Draw a row of panels per quantity: by epochs, and by seconds."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    rows = tables["numbers"]
    runs = runs_of(rows, ["model"])
    shown = {
        f"validation {heading(*column)}": {name: recall(of, column) for name, of in runs.items()}
        for column in columns_of(rows)
    }
    losses = {name: (r["epoch"], r["seconds"], r["cvar"]) for name, (r, *_) in runs.items()}
    drawn = []
    for what, found in (shown or {"CVaR of training losses": losses}).items():
        for x, place in (("epochs", 0), ("seconds of training", 1)):
            drawn.append(Panel(x, what, {n: (c[place], c[2]) for n, c in found.items()}, log="x"))
    figure, axes = curves(drawn, height=2.3, sharey="row")
    for place, found in zip(axes[::2], shown.values(), strict=False):
        best = max(values.max() for _, _, values in found.values())
        place.set_ylim(SHOWN * best, best + 0.1 * (1 - SHOWN) * best)
    return figure


# dimensions


def dimension_cases(options: Options) -> list[Case]:
    """Return SAFER2 with all numbers of factors and solvers."""
    grid, scored = DATA["grids"][options.data], has_quality(options.data)
    shape, which = shape_of(options.data), grid["which"]
    (preset,) = presets.require(shape, which, ("SAFER2",), options.presets)
    found = []
    for factors in grid["factors"]:
        base = presets.changed(preset, factors=factors, iterations=grid["epochs"])
        solvers = {"spectral CG (SAFER2)": base, "CG (SAFER2-CG)": presets.cg(base)}
        if factors <= grid["exact_up_to"]:
            solvers["exact (SAFER2)"] = presets.exact(base)
        for size in grid["blocks"]:
            if size < factors:
                solvers[f"blocks of {size} (SAFER2++)"] = presets.blockwise(base, size)
        for solver, each in solvers.items():
            found += course_cases((factors, solver), each, options, 1, scored=scored)
    return found


def dimensions(results: list[Result], options: Options) -> Tables:
    """Return seconds per epoch, and quality by seconds where it is meaningful."""
    names, grid = ["factors", "solver"], DATA["grids"][options.data]
    rows = numbers(results, names, timed=True)
    left_out = ("factors", "iterations", "solver")
    kept = {k: v for k, v in results[0].settings["options"].items() if k not in left_out}
    facts = {"epochs": grid["epochs"], "settings": presets.options_text(kept)}
    if grid["exact_up_to"] < max(grid["factors"]):
        facts["exact_up_to"] = grid["exact_up_to"]
    return {"numbers": rows, "paces": paces(rows, names, 1), "facts": [facts]}


def draw_dimensions(tables: Tables) -> Any:
    """Draw recall by seconds, a row per number of factors, or seconds per epoch by factors."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    rows, title = tables["numbers"], "seconds of training"
    runs = runs_of(rows, ["factors", "solver"])
    factors = sorted({d for d, _ in runs})
    drawn = []
    for d in factors:
        for column in columns_of(rows):
            found = {name: recall(of, column)[1:] for (size, name), of in runs.items() if size == d}
            drawn.append(Panel(title, heading(*column), found, f"d = {d}", log="x"))
    if drawn:
        return curves(drawn, legend=3, height=1.9, sharex="row")[0]
    paced: dict[str, dict[int, float]] = {}
    for row in tables["paces"]:
        paced.setdefault(row["solver"], {})[row["factors"]] = row["pace"]
    lines = {solver: (list(of), list(of.values())) for solver, of in paced.items()}
    panel = Panel("factors d", "seconds per epoch", lines, log="y")
    figure, (place,) = curves([panel], legend=2, height=3.2)
    place.set_xscale("log", base=2)
    place.set_xticks(factors, [str(d) for d in factors])
    return figure


# Profiles of SAFER2

LAST = 10  # epochs at the end, for the table
TAIL = 0.3  # of the authors' settings
ROUNDING = 1e-9  # smaller norms are shown as 0
SIGNIFICANT = 2.0  # standard errors
SAME = 0.01  # a smaller relative difference counts as "almost the same"
UNDECIDED = "not told apart"
WATCHED = {"mean_weight": "mean weight", "cvar": "CVaR of training losses"}


def measure(name: str, run: Run, columns: Sequence[Column]) -> float:
    """Return a mean over the last epochs; of a "swing" the range."""
    norms = {"norm of ΔU": "residual_users", "norm of Δz": "residual_weights"}
    if name in norms:
        return float(run[norms[name]][-LAST:].mean())
    values = recall([run], columns[1 if name.endswith("tail") else 0])[2][-LAST:]
    return float(np.ptp(values) if name.startswith("swing") else values.mean())


def judged(claim: Row, runs: Runs, columns: Sequence[Column]) -> Row:
    """Return the difference of two curves, paired by start, and what it says of a claim."""
    first, second = (
        np.array([measure(claim["measure"], run, columns) for run in runs[claim[name]]])
        for name in ("first", "second")
    )
    differences = first - second
    mean, error = float(differences.mean()), math.nan
    if differences.size > 1:
        error = float(differences.std(ddof=1) / differences.size**0.5)
    level = float(np.mean([first, second])) if claim.get("alike") else None
    what = f"{claim['measure']}, {claim['first']} less {claim['second']}"
    found = {"claim": claim["claim"], "what": what, "mean": mean, "error": error}
    return {**found, "verdict": verdict(mean, error, level)}


def verdict(mean: float, error: float, level: float | None = None) -> str:
    """Judge a difference by its standard error.

    It should be above 0, or, given the mean level of both curves, almost 0.

    >>> verdict(0.003, 0.001), verdict(0.003, 0.0, level=1.0)
    ('seen', 'seen')
    """
    margin = SIGNIFICANT * error
    if math.isnan(error):
        return "not told by one start"
    if level is None:
        return UNDECIDED if abs(mean) <= margin else "seen" if mean > 0 else "the opposite"
    if abs(mean) + margin < SAME * level:
        return "seen"
    return "not seen" if abs(mean) - margin > SAME * level else UNDECIDED


def profile_cases(name: str, options: Options) -> list[Case]:
    """Return the cases of every curve with every seed."""
    (preset,) = presets.require(options.data, "paper", ("SAFER2",), options.presets)
    changed = {curve: presets.changed(preset, **of) for curve, of in DATA[name]["curves"].items()}
    return [case for curve, each in changed.items() for case in course_cases(curve, each, options)]


def profile(name: str, results: list[Result], options: Options) -> Tables:
    """Return the curves, residual norms and quality in the last epochs, and claims."""
    rows = numbers(results, ["curve"], timed=False)
    return {"numbers": rows, **summary(name, rows)}


def summary(name: str, rows: Sequence[Row]) -> Tables:
    """Return what follows from the curves."""
    runs, columns = runs_of(rows, ["curve"]), columns_of(rows)
    found = []
    for curve, of in runs.items():
        users = [run["residual_users"] for run in of]
        off = np.mean([np.abs(run["mean_weight"][-LAST:] / TAIL - 1).mean() for run in of])
        row: Row = {"curve": curve, "off": short(float(off))}
        row |= {n: short(float(np.mean([run[n][-LAST:].mean() for run in of]))) for n in RESIDUALS}
        row["left"] = float(np.mean([each[-LAST:].mean() / each.max() for each in users]))
        for place, end in enumerate(("", " of the tail")):
            means, swings = (
                [measure(what + end, run, columns) for run in of] for what in ("recall", "swing")
            )
            std = float(np.std(means, ddof=1)) if len(means) > 1 else None
            row |= {f"recall{place}": float(np.mean(means)), f"std{place}": std}
            row[f"swing{place}"] = float(np.mean(swings))
        found.append(row)
    claims = [judged(claim, runs, columns) for claim in DATA[name]["claims"]]
    return {"curves": found, "claims": claims}


def short(value: float) -> str:
    """Write a norm in two digits."""
    return "0" if value < ROUNDING else f"{value:.2g}"


def draw_profile(name: str, tables: Tables) -> Any:
    """Draw residual norms in the first row, recalls and the watched column in the second."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    rows, watched = tables["numbers"], DATA[name]["watched"]
    runs = runs_of(rows, ["curve"])
    runs = {curve: runs[curve] for curve in DATA[name].get("drawn", runs)}
    drawn = []
    for column, label in {**RESIDUALS, watched: WATCHED[watched]}.items():
        of = {curve: (run["epoch"], run[column]) for curve, (run, *_) in runs.items()}
        shown = {curve: (x, np.where(y < ROUNDING, np.nan, y)) for curve, (x, y) in of.items()}
        drawn.append(Panel("epoch", label, shown))
    for recalled in columns_of(rows):
        found = {curve: recall(each, recalled) for curve, each in runs.items()}
        lines = {curve: (epochs, values) for curve, (epochs, _, values) in found.items()}
        drawn.insert(-1, Panel("epoch", heading(*recalled), lines))
    figure, axes = curves(drawn, legend=len(runs), columns=3, height=1.9)
    for place in axes[:3]:
        place.set_yscale("log")
    for place, panel in zip(axes[3:5], drawn[3:5], strict=True):  # two epochs may be outside
        later = [value for _, values in panel.curves.values() for value in values[2:]]
        if later:
            place.set_ylim(bottom=0.99 * min(later))
    return figure


BANDWIDTH, SAMPLING, XI_STEPS = (
    declared(name, *(partial(each, name) for each in (profile_cases, profile, draw_profile)))
    for name in ("bandwidth", "sampling", "xi-steps")
)
WALLTIME = declared("walltime", walltime_cases, walltime, draw_walltime)
DIMENSIONS = declared("dimensions", dimension_cases, dimensions, draw_dimensions)
