"""Pictures of the documentation that no experiment draws: `python -m docs.pictures`.

They are made by the library's own code, on synthetic users. Run it from the root of a checkout.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import figures
from reproduction.figures import COLOURS, error_bars, line_style, panels
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
WIDTH = 720  # of the picture of the layers
LETTERS = 85  # which a line of it has room for
RIGHT = 'text-anchor="end"'


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


def where() -> Any:
    """Draw the table of `docs/where.md`: gains by the mean length of histories."""
    page = (DOCS / "where.md").read_text()
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    heads, *rows = [[cell.strip(" *") for cell in row] for row in rows]
    figure, axes = panels(2, height=2.4, sharey=True)
    for panel, column, title in zip(
        axes, (4, 5), ("nDCG", "nDCG, the worst-off 30 %"), strict=True
    ):
        assert heads[column] == ("nDCG", "its tail")[column - 4]
        for place, row in enumerate(rows):
            value, low, high = (float(each) for each in re.findall(r"-?\d+\.\d", row[column]))
            style = line_style(place)
            panel.errorbar(
                float(row[1]),
                value,
                yerr=error_bars([value], [low], [high]),
                label=row[0],
                color=style.color,
                marker=style.marker,
            )
        panel.axhline(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set(xlabel=heads[1], title=title)
    axes[0].set_ylabel("gain over iALS, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def architecture() -> str:
    """Draw the layers of the packages, as `pyproject.toml` has them: names, and what they do."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    parts, top = [], 10
    for layer in layers:
        names = layer.split(" | ")
        said = "; ".join(PACKAGES[name] for name in names if name in PACKAGES)
        title = ", ".join(names)
        two_lines = len(title) + len(said) > LETTERS
        height = 52 if two_lines else 34
        place = f'x="22" y="{top + 40}"' if two_lines else f'x="698" y="{top + 21}" {RIGHT}'
        fill = "#dbe7f5" if CORE & {*names} else "#f1f3f5"
        parts.append(
            f'<rect x="10" y="{top}" width="{WIDTH - 20}" height="{height}" rx="6" '
            f'fill="{fill}" stroke="#9aa5b1"/>'
            f'<text x="22" y="{top + 21}" font-weight="600">{title}</text>'
            f'<text {place} fill="#4d5761">{said}</text>'
        )
        top += height + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 4}" '
        'font-family="sans-serif" font-size="13" role="img" '
        'aria-label="The layers of the packages; each may import those below it">'
        f'<rect width="{WIDTH}" height="{top + 4}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    for draw, name in ((weights, "weights"), (spectral_cg, "spectral-cg"), (where, "where")):
        figures.save(draw, FOLDER / name)
    (FOLDER / "architecture.svg").write_text(architecture())


if __name__ == "__main__":
    main()
