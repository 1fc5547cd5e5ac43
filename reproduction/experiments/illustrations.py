"""`cvar` and `check-function`: the illustrations of the paper, computed by the library."""

from typing import Any

import numpy as np
from scipy.stats import gamma

from reproduction.experiment import Options, Result, Row, Tables
from reproduction.experiments import declared
from reproduction.figures import GREY, Panel, curves, lines_of
from safecf.als.kernels import KERNELS, Floats
from safecf.als.population import Population, Smoothing
from safecf.als.quantile import Psi, bisection
from safecf.als.risk import CVaR

TAIL = 0.3
TAU = 1 - TAIL
SHAPE, SCALE = 2, 3  # of the gamma density that the paper draws
DRAWN = 9.5  # VaR in its figure
USERS = 20_000  # whose losses are evenly spaced quantiles
SMOOTHED = (1.0, 3.0)  # bandwidths
LOSSES, XIS = np.linspace(0, 24, 241), np.linspace(2, 16, 71)

BANDWIDTHS = (0.25, 0.5, 1.0)
SHOWN = ("gaussian", "epanechnikov")  # the paper's two
REACH = 2.0
GRID = np.linspace(-REACH, REACH, 161)
POINTS = (-2.0, -1.0, 0.0, 1.0, 2.0)


def _exact(tail: float) -> Row:
    """Return mean, VaR and CVaR as integrals; x f(x) is the mean times the next gamma density."""
    mean, var = float(SHAPE * SCALE), float(gamma(SHAPE, scale=SCALE).isf(tail))
    cvar = mean * float(gamma(SHAPE + 1, scale=SCALE).sf(var)) / tail
    return {"mean": mean, "VaR": var, "CVaR": cvar}


def _cvar(results: list[Result], options: Options) -> Tables:
    """Return the density, xi + 1/alpha E max(0, loss - xi), and this smoothed, with its minima."""
    density = gamma(SHAPE, scale=SCALE)
    users = Population(density.ppf((np.arange(USERS) + 0.5) / USERS))
    objective = [CVaR(TAIL).total(users, xi) / (TAIL * users.size) for xi in XIS]
    lines: dict[str, Any] = {"density": (LOSSES, density.pdf(LOSSES))}
    lines["objective, h = 0"] = (XIS, objective)
    minima = []
    for h in SMOOTHED:
        psi = Psi(users, Smoothing(TAIL, KERNELS["gaussian"], h))
        lines[f"objective, h = {h:g}"] = (XIS, [psi.at(xi).value for xi in XIS])
        best = bisection(psi, *psi.bracket())
        weight = float(np.mean(psi.weights(best)))
        minima.append({"h": h, "xi": best, "value": psi.at(best).value, "weight": weight})
    marks = []
    for tail in (TAIL, float(density.sf(DRAWN))):
        ours = {"mean": users.mean_loss, "VaR": users.value_at_risk(tail)}
        ours["CVaR"] = users.tail_mean(tail)
        marks.append({"by": "the library", "alpha": tail, **ours})
        marks.append({"by": "integrals", "alpha": tail, **_exact(tail)})
    numbers = [
        {"curve": name, "x": float(x), "y": float(y)}
        for name, line in lines.items()
        for x, y in zip(*line, strict=True)
    ]
    return {"numbers": numbers, "marks": marks, "minima": minima}


def _draw_cvar(tables: Tables) -> Any:
    lines = lines_of(tables["numbers"], "curve", "x", "y")
    found = {name.removeprefix("objective, "): line for name, line in lines.items()}
    marks, density = _exact(TAIL), {"density": found.pop("density")}
    label = r"$\xi + \frac{1}{\alpha} E[\max(0, \mathrm{loss} - \xi)]$"
    drawn = [Panel("loss of a user", "density", density), Panel(r"$\xi$", label, found)]
    figure, (left, right) = curves(drawn, height=2.3)
    losses, heights = map(np.array, density["density"])
    tail = losses >= marks["VaR"]
    left.fill_between(losses, heights, where=tail, color="#0072B2", alpha=0.4, linewidth=0)
    left.text(marks["VaR"] + 0.6, 0.012, rf"$\alpha = {TAIL:g}$")
    for (name, place), height in zip(marks.items(), (0.97, 0.84, 0.71), strict=True):
        left.axvline(place, ymax=height, color="#555555", linestyle="--", linewidth=0.8)
        at = (place, height * 0.15)
        left.annotate(f"{name} {place:.2f}", at, (4, -6), textcoords="offset points")
    left.set(xlim=(0, LOSSES[-1]), ylim=(0, 0.15))
    point = marks["VaR"], marks["CVaR"]
    right.plot(*point, "*", color="#000000", markersize=8)
    right.annotate("(VaR, CVaR)", point, (-20, 8), textcoords="offset points")
    return figure


def check(u: Floats) -> Floats:
    """rho_tau(u) = (tau - 1{u < 0}) u."""
    return np.where(u < 0, TAU - 1, TAU) * u


def _convolved(kernel: str, u: float, h: float) -> float:
    """Return the integral of rho_tau(u + h t) k(t) dt by the midpoint rule."""
    width = 1 / 4096
    t = (np.arange(-40 / width, 40 / width) + 0.5) * width
    return float(check(u + h * t) @ KERNELS[kernel].density(t)) * width


def _printed(kernel: str, u: float, h: float) -> float | None:
    """Return the value of the formula as printed in the paper, None if it has none."""
    if kernel not in SHOWN:
        return None
    t = u / h
    if kernel == "gaussian":
        density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        smooth = density + t * (2 * KERNELS[kernel].cdf(np.array(t)) - 1)
    else:
        inside = 3 / 4 * t**2 - t**4 / 8 + 3 / 8
        smooth = inside * (abs(t) <= 1) + abs(t) * (u > 1)
    return float(h / 2 * smooth + (TAU - 1 / 2) * u)


def _check_function(results: list[Result], options: Options) -> Tables:
    """Return the smoothed check functions and weights, and formulas beside integrals."""

    def smoothed(name: str, u: float, h: float) -> float:
        return float(KERNELS[name].smoothed_check(np.array(u), h, TAU))

    numbers = [
        {"kernel": name, "bandwidth": h, "u": u, "check function": float(check(np.array(u)))}
        | {"smoothed": smoothed(name, u, h), "weight": float(kernel.cdf(np.array(u / h)))}
        for name, kernel in KERNELS.items()
        for h in BANDWIDTHS
        for u in map(float, GRID)
    ]
    h = BANDWIDTHS[1]
    formulas = [
        {"kernel": name, "u": u, "ours": smoothed(name, u, h)}
        | {"integral": _convolved(name, u, h), "printed": _printed(name, u, h)}
        for name in KERNELS
        for u in POINTS
    ]
    return {"numbers": numbers, "formulas": formulas}


def _draw_check_function(tables: Tables) -> Any:

    def curve(kernel: str, h: float, column: str = "smoothed") -> tuple[list[Any], list[Any]]:
        rows = [r for r in tables["numbers"] if (r["kernel"], r["bandwidth"]) == (kernel, h)]
        return [row["u"] for row in rows], [row[column] for row in rows]

    y, widths = r"$(\rho_{1-\alpha} * k_h)(u)$", {f"h = {h:g}": h for h in BANDWIDTHS}
    drawn = [
        Panel("$u$", y, {n: curve(kernel, h) for n, h in widths.items()}, f"{kernel} kernel")
        for kernel in SHOWN
    ]
    one = BANDWIDTHS[-1]
    drawn.append(Panel("$u$", y, {k: curve(k, one) for k in KERNELS}, f"all kernels, h = {one:g}"))
    weights = {name: curve("gaussian", h, "weight") for name, h in widths.items()}
    x, y = r"$\mathrm{loss} - \xi$", r"$1 - K_h(\xi - \mathrm{loss})$"
    drawn.append(Panel(x, y, weights, "weight of a user, Gaussian kernel"))
    figure, axes = curves(drawn, legend=4, height=2.1)
    plain = {"color": GREY, "linewidth": 2.5, "alpha": 0.6, "zorder": 1}
    for panel in axes[:3]:
        panel.plot(GRID, check(GRID), **plain)
    axes[3].plot([-REACH, 0, 0, REACH], [0, 0, 1, 1], **plain)
    return figure


CVAR = declared("cvar", lambda options: [], _cvar, _draw_cvar)
CHECKS = declared("check-function", lambda options: [], _check_function, _draw_check_function)
