"""`cvar`: the CVaR of losses, and the function of xi whose minimum it is."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import gamma

from reproduction.base import Experiment, Options, Results
from reproduction.page import Page, table
from safecf.als.kernels import KERNELS, Floats
from safecf.als.population import Population, Smoothing
from safecf.als.quantile import Psi, bisection
from safecf.als.risk import CVaR

TAIL = 0.3
SHAPE, SCALE = 2, 3  # of the gamma density that the paper draws
DRAWN = (6.0, 9.5, 13.5)  # mean, VaR and CVaR in its figure
USERS = 20_000
BANDWIDTHS = (1.0, 3.0)
LOSSES, XIS = np.linspace(0, 24, 241), np.linspace(2, 16, 71)


class Marks(NamedTuple):
    """The mean of the losses, their VaR and their CVaR."""

    mean: float
    var: float
    cvar: float


def density(loss: Floats) -> Floats:
    """Return f(loss)."""
    return np.asarray(gamma(SHAPE, scale=SCALE).pdf(loss))


def exact(tail: float) -> Marks:
    """Return the integrals; x f(x) is the mean times the gamma density of the next shape."""
    mean, var = SHAPE * SCALE, float(gamma(SHAPE, scale=SCALE).isf(tail))
    return Marks(mean, var, mean * float(gamma(SHAPE + 1, scale=SCALE).sf(var)) / tail)


def population() -> Population:
    """Return users whose losses are evenly spaced quantiles of the density."""
    return Population(gamma(SHAPE, scale=SCALE).ppf((np.arange(USERS) + 0.5) / USERS))


def measured(users: Population, tail: float) -> Marks:
    """Return what the library computes for these users."""
    return Marks(
        users.mean_loss,
        users.value_at_risk(tail),
        users.tail_mean(tail),
    )


def objective(users: Population, xi: float) -> float:
    """Return xi + 1/tail E max(0, loss - xi), whose minimum is the CVaR."""
    return CVaR(TAIL).total(users, xi) / (TAIL * users.size)


def smoothed(users: Population, h: float) -> Psi:
    """Return the same function with a smoothed max."""
    return Psi(users, Smoothing(TAIL, KERNELS["gaussian"], h))


def curves(users: Population) -> list[dict[str, Any]]:
    """Return the density, and the functions of xi."""
    rows = [("density", x, y) for x, y in zip(LOSSES, density(LOSSES), strict=True)]
    rows += [("objective, h = 0", xi, objective(users, xi)) for xi in XIS]
    rows += [
        (f"objective, h = {h:g}", xi, smoothed(users, h).at(xi).value)
        for h in BANDWIDTHS
        for xi in XIS
    ]
    return [{"curve": name, "x": float(x), "y": float(y)} for name, x, y in rows]


def render(results: Results, options: Options) -> Page:
    """Return the figure, and its numbers beside those of the paper's figure."""
    users, theirs = population(), float(gamma(SHAPE, scale=SCALE).sf(DRAWN[1]))
    lines = []
    for tail in (TAIL, theirs):
        lines.append([f"the library, alpha {tail:.3f}", *measured(users, tail)])
        lines.append([f"integrals, alpha {tail:.3f}", *map(float, exact(tail))])
    least = []
    for h in BANDWIDTHS:
        psi = smoothed(users, h)
        xi = bisection(psi, *psi.bracket())
        least.append([f"{h:g}", xi, psi.at(xi).value, float(np.mean(psi.weights(xi)))])
    return Page(
        [
            f"Losses with the density of the paper's picture, Gamma({SHAPE}, {SCALE}). The value "
            "at risk (VaR) is the loss that a share alpha of the users exceeds, the CVaR is the "
            f"mean loss of these. The library's numbers are those of {USERS:,} users whose losses "
            "are evenly spaced quantiles.",
            table(["", "mean", "VaR", "CVaR"], [*lines, ["drawn in the paper", *DRAWN]]),
            f"The VaR that the paper draws is that of alpha = {theirs:.2f}; its CVaR is a little "
            "too far right.",
            "The CVaR is also the least value of xi + 1/alpha E max(0, loss - xi), at xi = VaR, "
            "which is what can be trained. With a max that is smoothed by the Gaussian kernel:",
            table(["h", "best xi", "least value", "mean weight of users"], least),
        ],
        curves(users),
        lambda: draw(users),
        "Left: losses, the worst-off share alpha of which is shaded. Right: the function of xi "
        "whose least value is the CVaR",
    )


def draw(users: Population) -> Any:
    """Draw the density with its tail, and the functions of xi."""
    from reproduction.figures import line_style, panels  # noqa: PLC0415

    figure, (left, right) = panels(2, height=2.3)
    marks = exact(TAIL)
    left.plot(LOSSES, density(LOSSES), color="#000000")
    beyond = np.linspace(marks.var, LOSSES[-1], 100)
    left.fill_between(beyond, density(beyond), color="#0072B2", alpha=0.4, linewidth=0)
    left.text(marks.var + 0.6, 0.012, rf"$\alpha = {TAIL:g}$")
    names = ("mean", "VaR", "CVaR")
    heights = (0.97, 0.84, 0.71)
    for name, place, height in zip(names, marks, heights, strict=True):
        left.axvline(place, ymax=height, color="#555555", linestyle="--", linewidth=0.8)
        top = height * 0.15
        left.annotate(f"{name} {place:.2f}", (place, top), (4, -6), textcoords="offset points")
    left.set(xlabel="loss of a user", ylabel="density", xlim=(0, LOSSES[-1]), ylim=(0, 0.15))
    right.plot(XIS, [objective(users, xi) for xi in XIS], label="not smoothed", color="#7F7F7F")
    right.plot([marks.var], [marks.cvar], "*", color="#000000", markersize=8, label="(VaR, CVaR)")
    for place, h in enumerate(BANDWIDTHS, 1):
        values = [smoothed(users, h).at(xi).value for xi in XIS]
        right.plot(XIS, values, label=f"$h = {h:g}$", markevery=8, **line_style(place)._asdict())
    right.set(xlabel=r"$\xi$", ylabel=r"$\xi + \frac{1}{\alpha} E[\max(0, \mathrm{loss} - \xi)]$")
    right.legend()
    return figure


EXPERIMENT = Experiment(
    "cvar",
    "What CVaR is",
    'figure "illustration of CVaR"',
    lambda options: [],
    render,
    data=(),
)
