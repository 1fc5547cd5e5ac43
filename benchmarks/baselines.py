"""Ranking quality of the models that are no ALS, on MovieLens-1M's test users."""

from collections.abc import Callable
from typing import Annotated

import typer

from benchmarks import report
from benchmarks.ml1m import COLUMNS, load_split, quality
from safecf.models import EASE, MultVAE, Recommender


def _mult_vae(seed: int) -> MultVAE:
    """Tuned on the validation users, within the paper's ranges."""
    return MultVAE(
        32,
        iterations=60,
        step_size=0.005,
        batch_size=200,
        beta=0.1,
        random_state=seed,
        device="cpu",
    )


# name: how to make it with a seed, and what the paper says that it scores
BASELINES: dict[str, tuple[Callable[[int], Recommender], tuple[float, ...] | None]] = {
    "EASE": (lambda seed: EASE(400.0), None),
    "Mult-VAE": (_mult_vae, (0.3329, 0.4539, 0.1106, 0.2245)),
}


def main(
    path: Annotated[
        str | None, typer.Option(help="Archive, folder or file of MovieLens-1M; else SAFECF_DATA.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds of Mult-VAE.")] = 3,
) -> None:
    """Train EASE, and Mult-VAE with several seeds; this needs torch."""
    split = load_split(path)
    rows = []
    for name, (make, paper) in BASELINES.items():
        found = quality(make, split, range(1 if name == "EASE" else seeds))
        cells = [f"{value:.4f}" for value in found.mean(axis=0)]
        if len(found) > 1:
            spread = found.std(axis=0, ddof=1)
            cells = [f"{mean} ± {std:.4f}" for mean, std in zip(cells, spread, strict=True)]
        rows.append([name, *cells])
        print(rows[-1], flush=True)
        if paper is not None:
            rows.append(["the paper's", *(f"{value:.4f}" for value in paper)])
    page = report.write(
        "baselines",
        "Ranking quality of EASE and Mult-VAE on MovieLens-1M",
        "The paper's split, 1,000 test users. EASE at lambda 400, which has no chance in it; "
        f"Mult-VAE at d = 32, mean and standard deviation of {seeds} seeds, its settings chosen on "
        "the validation users.",
        report.table(["", *COLUMNS], rows),
    )
    print(page.read_text())
