"""Pictures of the documentation that no experiment draws: `python docs/pictures.py`.

They are made by the library's own code, on synthetic users. Run it from the root of a checkout.
"""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import figures
from reproduction.figures import COLOURS, line_style, panels
from safecf import ERMMF, SAFER2
from safecf.als.kernels import KERNELS
from safecf.als.solvers import CG, SpectralCG
from safecf.backends.numpy.twin import System, solve_cg, solve_spectral_cg
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.datasets import synthetic

DOCS = Path(__file__).parent
FOLDER = DOCS / "pictures"
STEPS = range(7)
PACKAGES = {
    "cli": "the command line",
    "approximate": "items as an index",
    "doctor": "the installation",
    "reporting": "the report",
    "serving": "HTTP",
    "spark": "Spark",
    "tuning": "ranges, trials, studies",
    "evaluation": "scores per held-out user, comparisons",
    "batch": "recommendations of many users into a file",
    "models": "the catalogue: a loss, a risk and a solver each; answers, files",
    "backends": "who computes: cpu (C++), torch (GPU), numpy (the twin)",
    "als": "the paper: kernels, quantile, risk, loss, rows, solvers, sweeps, loop",
    "measures": "metrics, tails, the bootstrap",
    "data": "reading, matrices, splits, data sets",
    "progress": "bars on stderr",
}
CORE = {"models", "backends", "als"}


def weights() -> Any:
    """Draw the losses of users with their weights, and what training does to the losses."""
    user_items = synthetic(6000, 2000, 400_000).matrix
    safer2 = SAFER2(64, iterations=20, random_state=0).fit(user_items, show_progress=False)
    equal = ERMMF(64, iterations=20, random_state=0).fit(user_items, show_progress=False)
    history = check_matrix(user_items)
    losses = [np.sort(model.user_losses(history, model.user_factors)) for model in (equal, safer2)]
    figure, (left, right) = panels(2, height=2.3)
    last = safer2.history[-1]
    x = np.linspace(losses[1][0], np.quantile(losses[1], 0.999), 200)
    left.hist(losses[1], bins=60, range=(x[0], x[-1]), color="#56B4E9", density=True)
    left.set(xlabel="loss of a user", ylabel="density of users")
    curve = left.twinx()
    weight = 1 - KERNELS["gaussian"].cdf((last.xi - x) / last.bandwidth)
    curve.plot(x, weight, color=COLOURS[2])
    curve.axvline(last.xi, color="#555555", linestyle="--", linewidth=0.8)
    curve.annotate(r"$\xi$", (last.xi, 1.02), ha="center", annotation_clip=False)
    curve.set(ylabel="weight $w_u$", ylim=(0, 1))
    curve.grid(visible=False)
    share = 100 * (1 - (np.arange(len(losses[0])) + 0.5) / len(losses[0]))
    change = 100 * (losses[1] / losses[0] - 1)
    right.axhline(0, color=COLOURS[0], linewidth=0.8)
    right.plot(share[::20], change[::20], color=COLOURS[1])
    right.set(
        xlabel="users, from the worst-off to the best-off (%)",
        ylabel="training loss over equal weights (%)",
    )
    return figure


def spectral_cg() -> Any:
    """Draw how near CG comes to the solutions of a half-step of users, step by step."""
    user_items = synthetic(6000, 2000, 400_000).matrix
    model = SAFER2(64, iterations=3, random_state=0).fit(user_items, show_progress=False)
    items = model.item_factors.astype(np.float64)
    gram = model.resolved["unobserved_weight"] * items.T @ items
    ridge = model.resolved["regularization"] * (1 + model.resolved["unobserved_weight"] * 2000)
    rng = np.random.default_rng(0)
    errors: dict[str, list[list[float]]] = {"plain CG": [], "spectral CG": []}
    for user in rng.choice(6000, 200, replace=False):
        liked = user_items[user].indices
        system = System(gram, 1.0, ridge, items[liked], np.full(len(liked), 1 / len(liked)))
        right = system.right_hand_side()
        dense = gram + ridge * np.eye(64) + system.fixed.T @ system.fixed / len(liked)
        exact = np.linalg.solve(dense, right)
        # From the factors of an epoch before, about as far away as there.
        start = exact * (1 + 0.2 * rng.standard_normal(64))
        for name, solve, kind in (
            ("plain CG", solve_cg, CG),
            ("spectral CG", solve_spectral_cg, SpectralCG),
        ):
            found = [
                solve(system, start, kind(max_iterations=step, tolerance=0.0)) for step in STEPS
            ]
            errors[name].append(
                [float(np.linalg.norm(x - exact) / np.linalg.norm(exact)) for x in found]
            )
    figure, (axes,) = panels(1, height=2.3)
    for place, (name, found) in enumerate(errors.items()):
        axes.plot(STEPS, np.median(found, axis=0), label=name, **line_style(place)._asdict())
    axes.set(xlabel="steps", ylabel="error relative to the solution", yscale="log")
    axes.axhline(1e-3, color="#555555", linestyle="--", linewidth=0.8)
    axes.legend()
    return figure


def architecture() -> str:
    """Draw the layers of the packages, as `pyproject.toml` has them."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    height, width, left = 34, 720, 10
    parts = []
    for place, layer in enumerate(layers):
        top, names = 10 + place * (height + 8), layer.split(" | ")
        said = "; ".join(PACKAGES[name] for name in names if name in PACKAGES)
        fill = "#dbe7f5" if CORE & {*names} else "#f1f3f5"
        parts.append(
            f'<rect x="{left}" y="{top}" width="{width - 20}" height="{height}" rx="6" '
            f'fill="{fill}" stroke="#9aa5b1"/>'
            f'<text x="{left + 12}" y="{top + 21}" font-weight="600">{", ".join(names)}</text>'
            f'<text x="{width - 22}" y="{top + 21}" text-anchor="end" fill="#4d5761">{said}</text>'
        )
    tall = 10 + len(layers) * (height + 8) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" '
        'font-family="sans-serif" font-size="13" role="img" '
        'aria-label="The layers of the packages; each may import those below it">'
        f'<rect width="{width}" height="{tall}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    with figures.style():
        for draw, name in ((weights, "weights"), (spectral_cg, "spectral-cg")):
            for file in figures.save(draw(), FOLDER / name):
                if file.suffix == ".png":
                    file.unlink()
    (FOLDER / "architecture.svg").write_text(architecture())


if __name__ == "__main__":
    main()
