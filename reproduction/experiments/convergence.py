"""Quality and residuals by epochs and seconds, of models, solvers, and options of the xi step.

`walltime` and `dimensions` have the clock; `bandwidth`, `sampling` and `xi-steps` are profiles of
SAFER2 with some options changed, which convergence.toml has.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import presets, scores, settings
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves, lines_of
from reproduction.page import heading
from reproduction.scores import Column
from reproduction.tasks import course
from safecf.models.presets import Preset

Run = dict[str, NDArray[np.float64]]  # a column's values by epoch; NaN where there is none
Runs = dict[Any, list[Run]]  # the starts of each curve, by its name

DATA = settings("experiments/convergence")
EVERY, THEN = 50, 10  # users are scored after every epoch up to this one, then after every tenth
NEAR = 0.99  # the share of its best recall at which a model counts as converged
RESIDUALS = {
    "residual_users": r"$\Vert \Delta U\Vert$",
    "residual_items": r"$\Vert \Delta V\Vert$",
    "residual_weights": r"$\Vert \Delta z\Vert$",
}
# Columns of a model's history; Mult-VAE has the objective only.
HISTORY = ("objective", "cvar", "mean_weight", *RESIDUALS)


def shape_of(data: str) -> str:
    """Return the data set whose shape and presets synthetic data have, without its quality."""
    return data.removesuffix("-like")


def course_cases(
    label: tuple[Any, ...], preset: Preset, options: Options, seeds: int, *, scored: bool = True
) -> list[Case]:
    """Return the cases of a model on the paper's split, with validation users scored or not."""
    last = int(preset.options["iterations"])
    looks = [epoch for epoch in range(1, last + 1) if epoch <= EVERY or epoch % THEN == 0]
    about = {"on": "validation", "looks": looks if scored else []}
    return [
        Case(course, {**presets.settings(preset, options.data, seed=seed), **about}, label)
        for seed in presets.seeds(preset, seeds)
    ]


def _numbers(results: list[Result], names: Sequence[str], *, timed: bool) -> list[Row]:
    """Return a row per epoch; `names` are those of the parts of a label."""
    found = []
    for each in results:
        about = {**dict(zip(names, each.label, strict=True)), "seed": each.settings["seed"]}
        metric = scores.columns(each.settings["data"])[0][0]
        clock = 0.0
        for epoch, row in enumerate(each.record["rows"], 1):
            clock += sum(row["seconds"].values())
            seconds = {"seconds": round(clock, 4)} if timed else {}
            history = {name: row.get(name) for name in HISTORY}
            recalls = {name: value for name, value in row.items() if name.startswith(metric)}
            found.append({**about, "epoch": epoch, **seconds, **history, **recalls})
    return found


def _runs(rows: Sequence[Row], *names: str) -> Runs:
    """Return the columns of all runs by their label."""
    columns = [name for name in rows[0] if name not in names]

    def arrays(run: list[Row]) -> Run:
        return {n: np.array([row.get(n) for row in run], dtype=float) for n in columns}

    return {
        label: [arrays(run) for run in grouped(of, "seed").values()]
        for label, of in grouped(rows, *names).items()
    }


def _columns(rows: Sequence[Row]) -> list[Column]:
    """Return the paper's measure, for all users and the worst-off 30 %; none if none is scored."""
    known = [metric for metric in ("recall@20", "recall@50") if f"{metric}, tail 1" in rows[0]]
    return [(metric, level) for metric in known[:1] for level in (1.0, 0.3)]


def _recall(runs: Sequence[Run], column: Column) -> Any:
    """Return epochs, seconds and values, means over the starts, up to where the first ended."""
    name = f"{column[0]}, tail {column[1]:g}"
    seen = [np.isfinite(run[name]) for run in runs]
    size = min(map(np.count_nonzero, seen))
    return np.mean(
        [
            [run.get(each, run["epoch"])[ok][:size] for each in ("epoch", "seconds", name)]
            for run, ok in zip(runs, seen, strict=True)
        ],
        axis=0,
    )


def _tables(
    names: Sequence[str], results: list[Result], options: Options, warm_up: int = 0
) -> Tables:
    """Return all epochs, and how long they take after the warm-up, how they end, and how soon."""
    rows = _numbers(results, names, timed=True)
    columns, paces = _columns(rows), []
    for of, runs in zip(grouped(rows, *names).values(), _runs(rows, *names).values(), strict=True):
        first = runs[0]
        pace = [np.median(np.diff(run["seconds"], prepend=0)[warm_up:]) for run in runs]
        row = {name: of[0][name] for name in names}
        row |= {"pace": float(np.mean(pace)), "epochs": len(first["epoch"])}
        row |= {name: float(first[name][-1]) for name in ("seconds", "objective", "cvar")}
        if columns:
            (epochs, seconds, values), tail = (_recall(runs, column) for column in columns)
            there = int(np.argmax(values >= NEAR * values.max()))
            row |= {"to_epochs": int(epochs[there]), "to_seconds": float(seconds[there])}
            row |= {"best": float(values.max()), "best_tail": float(tail[2].max())}
        paces.append(row)
    return {"numbers": rows, "paces": paces}


# walltime

SHOWN = 0.7  # the share of the best recall at which the axes begin


def _walltime_cases(options: Options) -> list[Case]:
    """Return all models where quality is measured, else those with the same losses as SAFER2."""
    shape = shape_of(options.data)
    scored = shape == options.data
    known = presets.load(shape, "paper")
    if scored:
        chosen = [presets.solved(known[of], *by) for of, *by in DATA["models"] if of in known]
    else:
        safer2 = known["SAFER2"].options
        same = {name: safer2[name] for name in ("unobserved_weight", "regularization")}
        chosen = [
            presets.solved(presets.changed(known[of], iterations=epochs, **same), *by)
            for of, epochs, *by in DATA["synthetic"]
        ]
    seeds = options.seeds if scored else 1
    found = [course_cases((each.name,), each, options, seeds, scored=scored) for each in chosen]
    return [case for cases in found for case in cases]


def _draw_walltime(tables: Tables) -> Any:
    rows = tables["numbers"]
    runs = _runs(rows, "model")
    shown = {
        f"validation {heading(*column)}": {name: _recall(of, column) for name, of in runs.items()}
        for column in _columns(rows)
    }
    losses = {name: (r["epoch"], r["seconds"], r["cvar"]) for name, (r, *_) in runs.items()}
    drawn = [
        Panel(x, what, {name: (of[place], of[2]) for name, of in found.items()}, log="x")
        for what, found in (shown or {"CVaR of training losses": losses}).items()
        for place, x in enumerate(("epochs", "seconds of training"))
    ]
    figure, axes = curves(drawn, height=2.3, sharey="row")
    for place, found in zip(axes[::2], shown.values(), strict=False):
        best = max(values.max() for _, _, values in found.values())
        place.set_ylim(SHOWN * best, best + 0.1 * (1 - SHOWN) * best)
    return figure


# dimensions


def _dimension_cases(options: Options) -> list[Case]:
    grid, shape = DATA["grids"][options.data], shape_of(options.data)
    preset, scored = presets.load(shape, grid["which"])["SAFER2"], shape == options.data
    found = []
    for factors in grid["factors"]:
        base = presets.changed(preset, factors=factors, iterations=grid["epochs"])
        solvers = {"spectral CG (SAFER2)": base, "CG (SAFER2-CG)": presets.solved(base, "CG")}
        if factors <= grid["exact_up_to"]:
            solvers["exact (SAFER2)"] = presets.solved(base, "exact")
        for size in grid["blocks"]:
            if size < factors:
                solvers[f"blocks of {size} (SAFER2++)"] = presets.solved(base, size)
        for solver, each in solvers.items():
            found += course_cases((factors, solver), each, options, 1, scored=scored)
    return found


def _dimensions(results: list[Result], options: Options) -> Tables:
    """Return seconds per epoch, and quality by seconds where it is meaningful."""
    grid, left_out = DATA["grids"][options.data], ("factors", "iterations", "solver")
    kept = {k: v for k, v in results[0].settings["options"].items() if k not in left_out}
    facts = {"epochs": grid["epochs"], "settings": presets.options_text(kept)}
    if grid["exact_up_to"] < max(grid["factors"]):
        facts["exact_up_to"] = grid["exact_up_to"]
    return {**_tables(("factors", "solver"), results, options, 1), "facts": [facts]}


def _draw_dimensions(tables: Tables) -> Any:
    rows = tables["numbers"]
    runs = _runs(rows, "factors", "solver")
    factors = sorted({d for d, _ in runs})
    drawn = []
    for d in factors:
        of_size = {solver: of for (size, solver), of in runs.items() if size == d}
        for column in _columns(rows):
            found = {solver: _recall(of, column)[1:] for solver, of in of_size.items()}
            about = ("seconds of training", heading(*column), found, f"d = {d}")
            drawn.append(Panel(*about, log="x"))
    if drawn:
        return curves(drawn, legend=3, height=1.9, sharex="row")[0]
    lines = lines_of(tables["paces"], "solver", "factors", "pace")
    drawn = [Panel("factors d", "seconds per epoch", lines, log="y")]
    figure, (place,) = curves(drawn, legend=2, height=3.2)
    place.set_xscale("log", base=2)
    place.set_xticks(factors, [str(d) for d in factors])
    return figure


# Profiles of SAFER2

LAST = 10  # epochs at the end, for the table
TAIL = 0.3  # of the authors' settings
ROUNDING = 1e-9  # smaller norms are shown as 0
SIGNIFICANT = 2.0  # standard errors
SAME = 0.01  # a smaller relative difference counts as "almost the same"
WATCHED = {"mean_weight": "mean weight", "cvar": "CVaR of training losses"}


def _profile_cases(name: str, options: Options) -> list[Case]:
    preset = presets.load(options.data, "paper")["SAFER2"]
    return [
        case
        for curve, of in DATA[name]["curves"].items()
        for case in course_cases((curve,), presets.changed(preset, **of), options, options.seeds)
    ]


def _profile(name: str, results: list[Result], options: Options) -> Tables:
    """Return the curves, residual norms and quality in the last epochs, and claims."""
    rows = _numbers(results, ["curve"], timed=False)
    runs, columns = _runs(rows, "curve"), _columns(rows)
    ends = {curve: _ends(of, columns) for curve, of in runs.items()}
    found = []
    for curve, of in runs.items():
        norms = {"off": [np.abs(run["mean_weight"][-LAST:] / TAIL - 1).mean() for run in of]}
        norms |= {norm: list(ends[curve][norm]) for norm in RESIDUALS}
        row: Row = {"curve": curve, **{norm: _short(each) for norm, each in norms.items()}}
        left = [run["residual_users"][-LAST:].mean() / run["residual_users"].max() for run in of]
        row["left"] = float(np.mean(left))
        for place, end in enumerate(("", " of the tail")):
            recall, swing = (ends[curve][what + end] for what in ("recall", "swing"))
            std = float(recall.std(ddof=1)) if recall.size > 1 else None
            row |= {f"recall{place}": float(recall.mean()), f"std{place}": std}
            row[f"swing{place}"] = float(swing.mean())
        found.append(row)
    claims = [_judged(claim, ends) for claim in DATA[name]["claims"]]
    return {"numbers": rows, "curves": found, "claims": claims}


def _short(norms: list[Any]) -> str:
    """Write the mean of norms in two digits."""
    mean = float(np.mean(norms))
    return "0" if mean < ROUNDING else f"{mean:.2g}"


def _ends(runs: Sequence[Run], columns: Sequence[Column]) -> Run:
    """Return means over the last epochs, one per start, and the range of recalls: their swing."""
    found = {norm: np.array([run[norm][-LAST:].mean() for run in runs]) for norm in RESIDUALS}
    for end, column in zip(("", " of the tail"), columns, strict=True):
        recalls = np.array([_recall([run], column)[2][-LAST:] for run in runs])
        found |= {f"recall{end}": recalls.mean(axis=1), f"swing{end}": np.ptp(recalls, axis=1)}
    return found


def _judged(claim: Row, ends: dict[Any, Run]) -> Row:
    """Return the difference of two curves, paired by start, and what it says of a claim.

    The difference should be above 0, or almost 0 if the claim is that the curves are alike.
    """
    pair = [ends[claim[name]][claim["of"]] for name in ("first", "second")]
    difference, size = pair[0] - pair[1], pair[0].size
    mean = float(difference.mean())
    error = float(difference.std(ddof=1) / size**0.5) if size > 1 else math.nan
    above, otherwise = mean, "the opposite"
    if claim.get("alike"):
        above, otherwise = SAME * float(np.mean(pair)) - abs(mean), "not seen"
    told = abs(above) > SIGNIFICANT * error
    verdict = ("seen" if above > 0 else otherwise) if told else "not told apart"
    what = f"{claim['measure']}, {claim['first']} less {claim['second']}"
    return {"claim": claim["claim"], "what": what, "mean": mean, "error": error, "verdict": verdict}


def _draw_profile(name: str, tables: Tables) -> Any:
    rows, watched = tables["numbers"], DATA[name]["watched"]
    runs = _runs(rows, "curve")
    runs = {curve: runs[curve] for curve in DATA[name].get("drawn", runs)}
    drawn = []
    for column, label in {**RESIDUALS, watched: WATCHED[watched]}.items():
        of = {curve: (run["epoch"], run[column]) for curve, (run, *_) in runs.items()}
        shown = {curve: (x, np.where(y < ROUNDING, np.nan, y)) for curve, (x, y) in of.items()}
        drawn.append(Panel("epoch", label, shown))
    for recalled in _columns(rows):
        found = {curve: _recall(each, recalled)[[0, 2]] for curve, each in runs.items()}
        drawn.insert(-1, Panel("epoch", heading(*recalled), found))
    figure, axes = curves(drawn, legend=len(runs), columns=3, height=1.9)
    for place in axes[:3]:
        place.set_yscale("log")
    for place, panel in zip(axes[3:5], drawn[3:5], strict=True):  # two epochs may be outside
        later = [value for _, values in panel.curves.values() for value in values[2:]]
        if later:
            place.set_ylim(bottom=0.99 * min(later))
    return figure


BANDWIDTH, SAMPLING, XI_STEPS = (
    declared(name, *(partial(each, name) for each in (_profile_cases, _profile, _draw_profile)))
    for name in ("bandwidth", "sampling", "xi-steps")
)
WALLTIME = declared("walltime", _walltime_cases, partial(_tables, ("model",)), _draw_walltime)
DIMENSIONS = declared("dimensions", _dimension_cases, _dimensions, _draw_dimensions)
