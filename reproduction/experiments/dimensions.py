"""`dimensions`: quality and time of SAFER2 by number of factors and solver."""

from dataclasses import replace
from typing import Any, NamedTuple

from reproduction import curves, presets, variants
from reproduction.aggregate import collect, heading
from reproduction.base import Cell, Experiment, Options, Result, Results, cells_of
from reproduction.page import Page, table
from reproduction.profiles import quality_columns
from safecf.models.presets import Preset

NAME = "SAFER2"
SPECTRAL, EXACT, CG = "spectral CG (SAFER2)", "exact (SAFER2)", "CG (SAFER2-CG)"


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
    "tiny": Grid("tuned", (4, 8), (2, 4), 3, 8),
    "ml-20m-like": LARGE,
    "ml-20m": LARGE._replace(epochs=15),
}


class Variant(NamedTuple):
    """A number of factors, and a solver."""

    factors: int
    solver: str


Found = dict[Variant, Result]


def all_variants(options: Options) -> dict[Variant, Preset]:
    """Return the presets of all solvers and numbers of factors; other options are the same."""
    grid, shape = GRIDS[options.data], curves.shape_of(options.data)
    (preset,) = presets.require(shape, grid.which, (NAME,), options.presets)
    found: dict[Variant, Preset] = {}
    for factors in grid.factors:
        changed = {"factors": factors, "iterations": grid.epochs}
        base = replace(preset, options={**preset.options, **changed})
        solvers = {SPECTRAL: base, CG: variants.cg(base)}
        if factors <= grid.exact_up_to:
            solvers[EXACT] = variants.exact(base)
        solvers |= {_blocks(b): variants.blockwise(base, b) for b in grid.blocks if b < factors}
        found |= {Variant(factors, solver): each for solver, each in solvers.items()}
    return found


def _blocks(size: int) -> str:
    return f"blocks of {size} (SAFER2++)"


def plan(options: Options) -> list[tuple[Variant, Cell]]:
    """Return all cells; synthetic users are not scored."""
    scored = curves.has_quality(options.data)
    return [
        (variant, curves.cell(preset, options.data, scored=scored))
        for variant, preset in all_variants(options).items()
    ]


def render(results: Results, options: Options) -> Page:
    """Return seconds per epoch, and quality by seconds where it is meaningful."""
    found = {variant: each for variant, (each,) in collect(plan(options), results).items()}
    scored, grid = curves.has_quality(options.data), GRIDS[options.data]
    (preset, *_) = all_variants(options).values()
    kept = {k: v for k, v in preset.options.items() if k not in ("factors", "iterations", "solver")}
    blocks = [
        f"SAFER2 with d factors, {grid.epochs} epochs, alone with all cores. The other settings "
        f"are the same everywhere: {presets.options_text(kept)}. Seconds per "
        "epoch are the median of those after the first. The paper's solvers are the exact one, "
        "CG with at most 5 steps, and blocks of coordinates; spectral CG is the library's own.",
        table(_header(options), [_line(variant, each, options) for variant, each in found.items()]),
        "The paper's figure is for ML-20M, without numbers. It says that SAFER2++ needs about as "
        "many epochs as SAFER2, which did not finish with d = 4,096, for the same quality in much "
        "less time, and that SAFER2-CG is the faster one of the two when d is small, as d = 256.",
    ]
    if grid.exact_up_to < max(grid.factors):
        blocks.append(f"The exact solver is left out beyond d = {grid.exact_up_to}, for its time.")
    return Page(
        blocks,
        [
            row
            for variant, each in found.items()
            for row in curves.rows({"factors": variant.factors, "solver": variant.solver}, each)
        ],
        lambda: draw_quality(found, options) if scored else draw_seconds(found),
        f"Recall of validation users by seconds of training, up to {grid.epochs} epochs"
        if scored
        else "Seconds per epoch by number of factors",
    )


def _header(options: Options) -> list[str]:
    common = ["d", "solver", "seconds per epoch", "objective at the end"]
    if not curves.has_quality(options.data):
        return common
    best = [f"best {heading(column)}" for column in quality_columns(options.data)]
    return [*common, f"epochs to {curves.NEAR:.0%}", f"seconds to {curves.NEAR:.0%}", *best]


def _line(variant: Variant, result: Result, options: Options) -> list[Any]:
    objective = float(curves.history(result, "objective").values[-1])
    common = [
        str(variant.factors),
        variant.solver,
        f"{curves.median_seconds(result, 1):.3f}",
        objective,
    ]
    if not curves.has_quality(options.data):
        return common
    recalls = [curves.recall([result], column) for column in quality_columns(options.data)]
    there = recalls[0].converged
    reached = [str(recalls[0].epochs[there]), f"{recalls[0].seconds[there]:.2f}"]
    return [*common, *reached, *(float(each.values.max()) for each in recalls)]


def draw_quality(found: Found, options: Options) -> Any:
    """Draw recall by seconds, for all and for the worst-off users, a row per number of factors."""
    from reproduction.figures import log_ticks, panels  # noqa: PLC0415

    columns, factors = quality_columns(options.data), _factors(found)
    figure, axes = panels(2 * len(factors), height=1.9, sharex="row")
    styles = _styles(found)
    rows = zip(factors, axes[::2], axes[1::2], strict=True)
    for d, *pair in rows:
        for panel, column in zip(pair, columns, strict=True):
            for variant, result in found.items():
                if variant.factors == d:
                    curve = curves.recall([result], column)
                    style = styles[variant.solver]._asdict()
                    panel.plot(curve.seconds, curve.values, label=variant.solver, **style)
            panel.set(xlabel="seconds of training", ylabel=heading(column), title=f"d = {d}")
            log_ticks(panel.xaxis)
    return _with_legend(figure, axes[-2])


def draw_seconds(found: Found) -> Any:
    """Draw the seconds per epoch by the number of factors, a line per solver."""
    from reproduction.figures import log_ticks, panels  # noqa: PLC0415

    figure, (panel,) = panels(1, height=3.2)
    factors = _factors(found)
    for solver, line in _styles(found).items():
        points = {
            variant.factors: curves.median_seconds(each, 1)
            for variant, each in found.items()
            if variant.solver == solver
        }
        panel.plot(list(points), list(points.values()), label=solver, **line._asdict())
    panel.set(xlabel="factors d", ylabel="seconds per epoch")
    log_ticks(panel.yaxis)
    panel.set_xscale("log", base=2)
    panel.set_xticks(factors, [str(d) for d in factors])
    return _with_legend(figure, panel, columns=2)


def _factors(found: Found) -> list[int]:
    return sorted({variant.factors for variant in found})


def _styles(found: Found) -> dict[str, Any]:
    from reproduction.figures import line_style  # noqa: PLC0415

    solvers = dict.fromkeys(variant.solver for variant in found)
    return {solver: line_style(place) for place, solver in enumerate(solvers)}


def _with_legend(figure: Any, panel: Any, columns: int = 3) -> Any:
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=columns)
    return figure


EXPERIMENT = Experiment(
    "dimensions",
    "SAFER2 by factors and solver, against the clock",
    'figure "effect of embedding and subspace block sizes on convergence speed of SAFER2++"',
    cells_of(plan),
    render,
    data=("ml-1m", "ml-20m-like", "ml-20m"),
    alone=True,
)
