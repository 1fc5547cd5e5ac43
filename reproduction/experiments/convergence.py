"""Quality and residuals by epochs and seconds, of models, solvers, and options of the xi step.

`walltime` and `dimensions` have the clock; `bandwidth`, `sampling` and `xi-steps` are profiles of
SAFER2 with some options changed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction import presets, published
from reproduction.data import RECIPES
from reproduction.experiment import TINY, Case, Experiment, Options, Result, Row, Tables
from reproduction.page import heading
from reproduction.scores import Column
from reproduction.tasks import course
from safecf.models.presets import Preset

Floats = NDArray[np.float64]
Run = dict[str, Floats]  # a column's values by epoch; NaN where there is none
Runs = dict[Any, list[Run]]  # the starts of each curve, by its name
Curve = tuple[Floats, Floats, Floats]  # epochs, seconds and values

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


def quality_columns(data: str) -> list[Column]:
    """Return the validation measure of the paper, for all users and for the worst-off 30 %."""
    return [(published.columns(data)[0][0], level) for level in (1.0, 0.3)]


def numbers(results: list[Result], names: Sequence[str], *, timed: bool) -> list[Row]:
    """Return a row per epoch; `names` are those of the parts of a label."""
    found = []
    for each in results:
        label = each.case.label if isinstance(each.case.label, tuple) else (each.case.label,)
        about = {**dict(zip(names, label, strict=True)), "seed": each.settings["seed"]}
        clock = 0.0
        for epoch, row in enumerate(each.record["rows"], 1):
            clock += sum(row["seconds"].values())
            seconds = {"seconds": round(clock, 4)} if timed else {}
            history = {name: row.get(name) for name in HISTORY}
            recalls = {name: value for name, value in row.items() if "@" in name}
            found.append({**about, "epoch": epoch, **seconds, **history, **recalls})
    return found


def runs_of(rows: Sequence[Row], names: Sequence[str]) -> Runs:
    """Return the columns of all runs by label; a label of one part is that part."""
    found: dict[Any, dict[int, list[Row]]] = {}
    for row in rows:
        label = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        found.setdefault(label, {}).setdefault(row["seed"], []).append(row)
    return {
        label: [
            {
                name: np.array([math.nan if row.get(name) is None else row[name] for row in run])
                for name in rows[0]
                if name not in names
            }
            for run in seeds.values()
        ]
        for label, seeds in found.items()
    }


def recall(runs: Sequence[Run], column: Column) -> Curve:
    """Return the mean over the starts, up to the epoch in which the first of them ended."""
    name = f"{column[0]}, tail {column[1]:g}"
    seen = [np.isfinite(run[name]) for run in runs]
    size = min(map(np.count_nonzero, seen))
    none = np.full(len(seen[0]), math.nan)
    epochs, seconds, values = (
        np.mean(
            [run.get(each, none)[ok][:size] for run, ok in zip(runs, seen, strict=True)], axis=0
        )
        for each in ("epoch", "seconds", name)
    )
    return epochs, seconds, values


def paces(rows: Sequence[Row], names: Sequence[str], data: str, warm_up: int = 0) -> list[Row]:
    """Return a row per model: how long an epoch takes, how it ends, and how soon recall is there.

    The first epochs, `warm_up`, do not count for the median of seconds.
    """
    found = []
    for label, runs in runs_of(rows, names).items():
        first = runs[0]
        pace = [np.median(np.diff(run["seconds"], prepend=0)[warm_up:]) for run in runs]
        row = dict(zip(names, label if len(names) > 1 else (label,), strict=True))
        row |= {"pace": float(np.mean(pace)), "epochs": len(first["epoch"])}
        row |= {name: float(first[name][-1]) for name in ("seconds", "objective", "cvar")}
        if has_quality(data):
            curves = [recall(runs, column) for column in quality_columns(data)]
            epochs, seconds, values = curves[0]
            there = int(np.argmax(values >= NEAR * values.max()))
            row |= {"to_epochs": int(epochs[there]), "to_seconds": float(seconds[there])}
            row |= {"best": float(values.max()), "best_tail": float(curves[1][2].max())}
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
            *((each, 10) for each in (safer2, presets.cg(safer2))),
            (presets.blockwise(safer2, BLOCK), 10),
            (presets.changed(erm, **same), 10),
            (presets.adam(presets.changed(cvar, **same)), 50),
        ]
        epochs.insert(1, (presets.exact(safer2), 4))
        chosen = [presets.changed(each, iterations=count) for each, count in epochs]
    seeds = None if scored else 1
    return [
        case
        for each in chosen
        for case in course_cases(each.name, each, options, seeds, scored=scored)
    ]


def walltime(results: list[Result], options: Options) -> Tables:
    """Return the curves, and how soon each model is there."""
    rows = numbers(results, ["model"], timed=True)
    return {"numbers": rows, "paces": paces(rows, ["model"], options.data)}


def draw_walltime(tables: Tables) -> Any:
    """Draw a row of panels per quantity: by epochs, and by seconds."""
    from reproduction.figures import line_styles, log_ticks, panels  # noqa: PLC0415

    runs = runs_of(tables["numbers"], ["model"])
    styles = line_styles(runs)
    shown: dict[str, dict[str, Curve]] = {}
    for metric in ("recall@20", "recall@50"):
        if f"{metric}, tail 1" in tables["numbers"][0] and not shown:
            shown = {
                f"validation {heading(metric, tail)}": {
                    name: recall(each, (metric, tail)) for name, each in runs.items()
                }
                for tail in (1.0, 0.3)
            }
    losses = {name: (r["epoch"], r["seconds"], r["cvar"]) for name, (r, *_) in runs.items()}
    shown = shown or {"CVaR of training losses": losses}
    figure, axes = panels(2 * len(shown), height=2.3, sharey="row")
    for (what, curves), left, right in zip(shown.items(), axes[::2], axes[1::2], strict=True):
        for name, (epochs, seconds, values) in curves.items():
            style = {"label": name, "markevery": 0.15, **styles[name]._asdict()}
            left.plot(epochs, values, **style)
            right.plot(seconds, values, **style)
        best = max(values.max() for _, _, values in curves.values())
        if what.startswith("validation"):
            left.set_ylim(SHOWN * best, best + 0.1 * (1 - SHOWN) * best)
        left.set(xlabel="epochs", ylabel=what)
        right.set(xlabel="seconds of training")
        for panel in (left, right):
            log_ticks(panel.xaxis)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


# dimensions


class Grid(NamedTuple):
    """The set of presets, the numbers of factors, block sizes and epochs on a data set."""

    which: str
    factors: tuple[int, ...]
    blocks: tuple[int, ...]
    epochs: int
    exact_up_to: int  # factors; with more, the exact solver takes too long


# Epochs of synthetic data are few: the first is a warm-up, and they are not scored.
LARGE = Grid("paper", (128, 256, 512, 1024), (64, 128), 3, 256)
GRIDS = {
    "ml-1m": Grid("tuned", (64, 256, 1024), (32, 64, 128), 15, 1024),
    TINY: Grid("tuned", (4, 8), (2, 4), 3, 8),
    "ml-20m-like": LARGE,
    "ml-20m": LARGE._replace(epochs=15),
}


def dimension_cases(options: Options) -> list[Case]:
    """Return SAFER2 with all numbers of factors and solvers."""
    grid, scored = GRIDS[options.data], has_quality(options.data)
    (preset,) = presets.require(shape_of(options.data), grid.which, ("SAFER2",), options.presets)
    found = []
    for factors in grid.factors:
        base = presets.changed(preset, factors=factors, iterations=grid.epochs)
        solvers = {"spectral CG (SAFER2)": base, "CG (SAFER2-CG)": presets.cg(base)}
        if factors <= grid.exact_up_to:
            solvers["exact (SAFER2)"] = presets.exact(base)
        for size in grid.blocks:
            if size < factors:
                solvers[f"blocks of {size} (SAFER2++)"] = presets.blockwise(base, size)
        for solver, each in solvers.items():
            found += course_cases((factors, solver), each, options, 1, scored=scored)
    return found


def dimensions(results: list[Result], options: Options) -> Tables:
    """Return seconds per epoch, and quality by seconds where it is meaningful."""
    names, grid = ["factors", "solver"], GRIDS[options.data]
    rows = numbers(results, names, timed=True)
    left_out = ("factors", "iterations", "solver")
    kept = {k: v for k, v in results[0].settings["options"].items() if k not in left_out}
    facts = {"epochs": grid.epochs, "settings": presets.options_text(kept)}
    if grid.exact_up_to < max(grid.factors):
        facts["exact_up_to"] = grid.exact_up_to
    return {"numbers": rows, "paces": paces(rows, names, options.data, 1), "facts": [facts]}


def draw_dimensions(tables: Tables) -> Any:
    """Draw recall by seconds, a row per number of factors, or seconds per epoch by factors."""
    from reproduction.figures import line_style, log_ticks, panels  # noqa: PLC0415

    runs = runs_of(tables["numbers"], ["factors", "solver"])
    solvers = dict.fromkeys(solver for _, solver in runs)
    styles = {solver: line_style(place)._asdict() for place, solver in enumerate(solvers)}
    factors = sorted({d for d, _ in runs})
    metrics = [m for m in ("recall@20", "recall@50") if f"{m}, tail 1" in tables["numbers"][0]]
    if metrics:
        figure, axes = panels(2 * len(factors), height=1.9, sharex="row")
        for d, *pair in zip(factors, axes[::2], axes[1::2], strict=True):
            for panel, tail in zip(pair, (1.0, 0.3), strict=True):
                for (size, solver), each in runs.items():
                    if size == d:
                        _, seconds, values = recall(each, (metrics[0], tail))
                        panel.plot(seconds, values, label=solver, **styles[solver])
                name = heading(metrics[0], tail)
                panel.set(xlabel="seconds of training", ylabel=name, title=f"d = {d}")
                log_ticks(panel.xaxis)
        panel, columns = axes[-2], 3
    else:
        figure, (panel,) = panels(1, height=3.2)
        for solver in solvers:
            pace = {
                row["factors"]: row["pace"] for row in tables["paces"] if row["solver"] == solver
            }
            panel.plot(list(pace), list(pace.values()), label=solver, **styles[solver])
        panel.set(xlabel="factors d", ylabel="seconds per epoch")
        log_ticks(panel.yaxis)
        panel.set_xscale("log", base=2)
        panel.set_xticks(factors, [str(d) for d in factors])
        columns = 2
    labels = panel.get_legend_handles_labels()
    figure.legend(*labels, loc="outside lower center", ncols=columns)
    return figure


# Profiles of SAFER2

LAST = 10  # epochs at the end, for the table
TAIL = 0.3  # of the authors' settings
ROUNDING = 1e-9  # smaller norms are shown as 0
SIGNIFICANT = 2.0  # standard errors
SAME = 0.01  # a smaller relative difference counts as "almost the same"
UNDECIDED = "not told apart"
WATCHED = {"mean_weight": "mean weight", "cvar": "CVaR of training losses"}

Measure = Callable[[Run, list[Column]], float]


def _recalls(run: Run, column: Column) -> Floats:
    return recall([run], column)[2][-LAST:]


MEASURES: dict[str, Measure] = {
    "norm of ΔU": lambda run, _: float(run["residual_users"][-LAST:].mean()),
    "norm of Δz": lambda run, _: float(run["residual_weights"][-LAST:].mean()),
    "swing of the recall": lambda run, columns: float(np.ptp(_recalls(run, columns[0]))),
    "recall": lambda run, columns: float(_recalls(run, columns[0]).mean()),
    "recall of the tail": lambda run, columns: float(_recalls(run, columns[1]).mean()),
}


class Claim(NamedTuple):
    """A statement of the paper on two curves, made measurable.

    `relation` is ">" if the first should have the larger value, "=" if they should be almost the
    same.
    """

    text: str
    measure: str
    first: str
    second: str
    relation: str = ">"

    def row(self, runs: Runs, columns: list[Column]) -> Row:
        """Return the difference, paired by start, and the verdict."""
        measure = MEASURES[self.measure]
        pairs = [
            [measure(run, columns) for run in runs[name]] for name in (self.first, self.second)
        ]
        differences = np.subtract(*pairs)
        mean, error = float(differences.mean()), math.nan
        if differences.size > 1:
            error = float(differences.std(ddof=1) / differences.size**0.5)
        verdict = self.verdict(mean, error, float(np.mean(pairs)))
        what = f"{self.measure}, {self.first} less {self.second}"
        return {"claim": self.text, "what": what, "mean": mean, "error": error, "verdict": verdict}

    def verdict(self, mean: float, error: float, level: float) -> str:
        """Judge the claim by a difference, its standard error, and the mean level of both curves.

        >>> Claim("h = 1 is better", "R@20", "h = 1", "h = 2").verdict(0.003, 0.001, 0.3)
        'seen'
        """
        if math.isnan(error):
            return "not told by one start"
        margin = SIGNIFICANT * error
        if self.relation == "=":
            if abs(mean) + margin < SAME * level:
                return "seen"
            return "not seen" if abs(mean) - margin > SAME * level else UNDECIDED
        return UNDECIDED if abs(mean) <= margin else "seen" if mean > 0 else "the opposite"


@dataclass(frozen=True)
class Profile:
    """Curves of SAFER2 with the authors' settings and some options changed, and claims on them.

    `drawn` are the curves of the figure, by default all; `watched` is the column in its last panel.
    """

    changes: Mapping[str, dict[str, Any]]
    claims: tuple[Claim, ...]
    drawn: tuple[str, ...] = ()
    watched: str = "mean_weight"

    def cases(self, options: Options) -> list[Case]:
        """Return the cases of every curve with every seed."""
        (preset,) = presets.require(options.data, "paper", ("SAFER2",), options.presets)
        changed = {name: presets.changed(preset, **each) for name, each in self.changes.items()}
        return [c for name, each in changed.items() for c in course_cases(name, each, options)]

    def tables(self, results: list[Result], options: Options) -> Tables:
        """Return the curves, residual norms and quality in the last epochs, and claims."""
        rows = numbers(results, ["curve"], timed=False)
        return {"numbers": rows, **self.summary(rows, quality_columns(options.data))}

    def summary(self, rows: Sequence[Row], columns: list[Column]) -> Tables:
        """Return what follows from the curves."""
        runs = runs_of(rows, ["curve"])
        curves = []
        for name, each in runs.items():
            norms = {r: float(np.mean([run[r][-LAST:].mean() for run in each])) for r in RESIDUALS}
            users = [run["residual_users"] for run in each]
            off = [np.abs(run["mean_weight"][-LAST:] / TAIL - 1).mean() for run in each]
            row = {"curve": name, "off": short(float(np.mean(off)))}
            row |= {name: short(norm) for name, norm in norms.items()}
            row["left"] = float(np.mean([u[-LAST:].mean() / u.max() for u in users]))
            for place, column in enumerate(columns):
                last = [_recalls(run, column) for run in each]
                means = [values.mean() for values in last]
                row[f"recall{place}"] = float(np.mean(means))
                row[f"std{place}"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
                row[f"swing{place}"] = float(np.mean([np.ptp(values) for values in last]))
            curves.append(row)
        return {"curves": curves, "claims": [claim.row(runs, columns) for claim in self.claims]}

    def draw(self, tables: Tables) -> Any:
        """Draw residual norms in the first row, recalls and the watched column in the second."""
        from reproduction.figures import line_style, panels  # noqa: PLC0415

        runs = runs_of(tables["numbers"], ["curve"])
        runs = {name: runs[name] for name in self.drawn or runs}
        figure, axes = panels(6, columns=3, height=1.9)
        metric = next(
            m for m in ("recall@20", "recall@50") if f"{m}, tail 1" in tables["numbers"][0]
        )
        columns = [(metric, 1.0), (metric, TAIL)]
        lowest = [math.inf, math.inf]
        for place, (name, each) in enumerate(runs.items()):
            style: dict[str, Any] = {"label": name, "markevery": (2 * place, 9)}
            style |= line_style(place)._asdict()
            first = each[0]
            for panel, residual in zip(axes[:3], RESIDUALS, strict=True):
                values = np.where(first[residual] < ROUNDING, np.nan, first[residual])
                panel.plot(first["epoch"], values, **style)
            for at, column in enumerate(columns):
                epochs, _, values = recall(each, column)
                axes[3 + at].plot(epochs, values, **style)
                lowest[at] = min(lowest[at], *values[2:], math.inf)  # the first two may be outside
            axes[5].plot(first["epoch"], first[self.watched], **style)
        headings = [heading(*column) for column in columns]
        labels = [*RESIDUALS.values(), *headings, WATCHED[self.watched]]
        for panel, label in zip(axes, labels, strict=True):
            panel.set(xlabel="epoch", ylabel=label)
        for panel in axes[:3]:
            panel.set_yscale("log")
        for panel, least in zip(axes[3:5], lowest, strict=True):
            if least < math.inf:
                panel.set_ylim(bottom=0.99 * least)
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(runs))
        return figure


def short(value: float) -> str:
    """Write a norm in two digits."""
    return "0" if value < ROUNDING else f"{value:.2g}"


def _users(share: float) -> str:
    return f"{100 * share:g} % of users"


def _steps(steps: int, share: float) -> str:
    return f"L = {steps}, {_users(share)}"


BANDWIDTHS = (0.01, 0.05, 0.18, 1e16)
SHARES = (0.01, 0.05, 0.1, 0.5, 1.0)
FEW, ALL = _users(SHARES[0]), _users(SHARES[-1])
STEPS = (1, 2, 5, 10)
LEAST, MOST = _steps(1, 0.01), _steps(5, 1.0)  # the paper has L = 5
IMPEDE, ALIKE = "h = 0.01 and 0.05 impede convergence", "final qualities are almost identical"

PROFILES = {
    "bandwidth": Profile(
        {f"h = {h:g}".replace("+", ""): {"bandwidth": h} for h in BANDWIDTHS},
        (
            Claim(IMPEDE, "norm of ΔU", "h = 0.01", "h = 0.18"),
            Claim(IMPEDE, "norm of ΔU", "h = 0.05", "h = 0.18"),
            Claim(
                "quality fluctuates with h = 0.01", "swing of the recall", "h = 0.01", "h = 0.18"
            ),
            Claim(
                "h = 1e16 is not the best for the tail",
                "recall of the tail",
                "h = 0.18",
                "h = 1e16",
            ),
        ),
        watched="cvar",
    ),
    "sampling": Profile(
        {_users(share): {"quantile_sample": share} for share in SHARES},
        (
            Claim("z fluctuates with few users", "norm of Δz", FEW, ALL),
            Claim(ALIKE, "recall", FEW, ALL, "="),
            Claim(ALIKE, "recall of the tail", FEW, ALL, "="),
        ),
    ),
    "xi-steps": Profile(
        {
            _steps(steps, share): {"quantile_steps": steps, "quantile_sample": share}
            for share in (1.0, 0.1, 0.01)
            for steps in STEPS
        },
        (
            Claim("z fluctuates with few steps and users", "norm of Δz", LEAST, MOST),
            Claim("quality is slightly worse where both are small", "recall", MOST, LEAST),
            Claim("that of the tail in particular", "recall of the tail", MOST, LEAST),
        ),
        tuple(_steps(steps, 0.1) for steps in STEPS),  # the share of users in the paper's figures
    ),
}


def _experiment(name: str, title: str, paper: str) -> Experiment:
    profile = PROFILES[name]
    return Experiment(
        *(name, title, profile.cases, profile.tables, {"": profile.draw}),
        paper=f'figure "convergence profile of SAFER2 with different {paper}"',
        data=("ml-1m", "ml-20m"),
        counts={"seeds": 5},
    )


BANDWIDTH = _experiment("bandwidth", "Convergence of SAFER2 by bandwidth", "bandwidth h")
SAMPLING = _experiment(
    "sampling",
    "Convergence of SAFER2 by the share of users in the xi step",
    "sampling ratio |U_b|/|U|",
)
XI_STEPS = _experiment(
    "xi-steps",
    "Convergence of SAFER2 by the number of Newton steps",
    "number of NR iterations L",
)
WALLTIME = Experiment(
    "walltime",
    "Ranking quality by epochs and by seconds",
    walltime_cases,
    walltime,
    {"": draw_walltime},
    paper='figure "ranking quality vs. training epochs/wall time"',
    data=("ml-1m", "ml-20m-like", "msd-like", "ml-20m", "msd"),
    counts={"seeds": 3},
    alone=True,
)
DIMENSIONS = Experiment(
    "dimensions",
    "SAFER2 by factors and solver, against the clock",
    dimension_cases,
    dimensions,
    {"": draw_dimensions},
    paper='figure "effect of embedding and subspace block sizes on convergence speed of SAFER2++"',
    data=("ml-1m", "ml-20m-like", "ml-20m"),
    alone=True,
)
