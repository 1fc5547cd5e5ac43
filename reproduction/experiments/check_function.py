"""`check-function`: the check function, and its convolutions with the kernels."""

from typing import Any

import numpy as np

from reproduction.base import Experiment, Options, Results
from reproduction.page import Page, table
from safecf.als.kernels import KERNELS, Floats

TAIL = 0.3
TAU = 1 - TAIL
BANDWIDTHS = (0.25, 0.5, 1.0)
SHOWN = ("gaussian", "epanechnikov")  # the paper's two
REACH = 2.0
GRID = np.linspace(-REACH, REACH, 161)
POINTS = (-2.0, -1.0, 0.0, 1.0, 2.0)


def check(u: Floats) -> Floats:
    """rho_tau(u) = (tau - 1{u < 0}) u."""
    return np.where(u < 0, TAU - 1, TAU) * u


def convolved(kernel: str, u: float, h: float) -> float:
    """Return the integral of rho_tau(u + h t) k(t) dt by the midpoint rule."""
    width = 1 / 4096
    t = (np.arange(-40 / width, 40 / width) + 0.5) * width
    return float(check(u + h * t) @ KERNELS[kernel].density(t)) * width


def printed(kernel: str, u: float, h: float) -> float:
    """Return the value of the formula as printed in the paper."""
    t = u / h
    if kernel == "gaussian":
        density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        smooth = density + t * (2 * KERNELS[kernel].cdf(np.array(t)) - 1)
    else:
        inside = 3 / 4 * t**2 - t**4 / 8 + 3 / 8
        smooth = inside * (abs(t) <= 1) + abs(t) * (u > 1)
    return float(h / 2 * smooth + (TAU - 1 / 2) * u)


def curves() -> list[dict[str, Any]]:
    """Return the smoothed check functions and weights, for every kernel and bandwidth."""
    return [
        {
            "kernel": name,
            "bandwidth": h,
            "u": u,
            "check function": float(check(np.array(u))),
            "smoothed": float(kernel.smoothed_check(np.array(u), h, TAU)),
            "weight": float(kernel.cdf(np.array(u / h))),
        }
        for name, kernel in KERNELS.items()
        for h in BANDWIDTHS
        for u in map(float, GRID)
    ]


def render(results: Results, options: Options) -> Page:
    """Return the curves, and a table of formulas beside integrals by quadrature."""
    h = BANDWIDTHS[1]
    lines = []
    for name, kernel in KERNELS.items():
        for u in POINTS:
            ours = float(kernel.smoothed_check(np.array(u), h, TAU))
            theirs = f"{printed(name, u, h):.4f}" if name in SHOWN else ""
            lines.append([f"{name}, u = {u:g}", ours, convolved(name, u, h), theirs])
    return Page(
        [
            f"The check function rho(u) = (tau - 1{{u < 0}}) u for tau = 1 - alpha = {TAU:g}, and "
            "its convolutions with kernels of bandwidth h, all by the library's own formulas. The "
            "xi with the least sum over users of rho(loss - xi) is the quantile of their losses. "
            "Where rho is smooth, Newton's method can find it, and each user has a weight between "
            "0 and 1.",
            f"The smoothed check functions at h = {h:g}: the library's formula, the integral by "
            "quadrature, and, for its two kernels, the formula that the paper prints. That of the "
            "Gaussian kernel lacks a factor 2 of the density, and that of Epanechnikov's is "
            "nothing outside of the support for u <= 1, where it is |u| / 2 on both sides.",
            table(["", "the library", "the integral", "as printed"], lines),
        ],
        curves(),
        draw,
        "Smoothed check functions by bandwidth and by kernel, and the weights that they give",
    )


def draw() -> Any:
    """Draw two kernels by bandwidth, all kernels at one bandwidth, and the weights of users."""
    from reproduction.figures import line_style, panels  # noqa: PLC0415

    figure, axes = panels(4, height=2.1)
    weights = axes[3]
    plain = {"color": "#7F7F7F", "linewidth": 2.5, "alpha": 0.6}
    for panel in axes[:3]:
        panel.plot(GRID, check(GRID), label=r"$\rho_{1-\alpha}$, not smoothed", **plain)
        panel.set(xlabel="$u$", ylabel=r"$(\rho_{1-\alpha} * k_h)(u)$")
    weights.plot([-REACH, 0, 0, REACH], [0, 0, 1, 1], label="not smoothed", **plain)
    for place, h in enumerate(BANDWIDTHS):
        style = {
            "label": f"$h = {h:g}$",
            "markevery": (10 * place, 40),
            **line_style(place)._asdict(),
        }
        for panel, name in zip(axes, SHOWN, strict=False):
            panel.plot(GRID, KERNELS[name].smoothed_check(GRID, h, TAU), **style)
            panel.set_title(f"{name.capitalize()} kernel")
        weights.plot(GRID, KERNELS["gaussian"].cdf(GRID / h), **style)
    for place, (name, kernel) in enumerate(KERNELS.items()):
        style = {
            "label": name.capitalize(),
            "markevery": (6 * place, 40),
            **line_style(place)._asdict(),
        }
        axes[2].plot(GRID, kernel.smoothed_check(GRID, BANDWIDTHS[-1], TAU), **style)
    axes[2].set_title(f"all kernels, $h = {BANDWIDTHS[-1]:g}$")
    weights.set_title("weight of a user, Gaussian kernel")
    weights.set(xlabel=r"$\mathrm{loss} - \xi$", ylabel=r"$1 - K_h(\xi - \mathrm{loss})$")
    axes[2].set_ylim(top=2.1)
    for panel in axes:
        panel.legend(ncols=2 if panel is axes[2] else 1)
    return figure


EXPERIMENT = Experiment(
    "check-function",
    "Check functions, smoothed",
    'figure "convolution-type smoothing"',
    lambda options: [],
    render,
    data=(),
)
