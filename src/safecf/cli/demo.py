"""`safecf demo`: iALS, ERM-MF and SAFER2 on synthetic users, some of whom have rare tastes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from safecf.cli.command_options import DataOptions, SplitOptions
from safecf.defaults import CUTOFFS, LEVEL, METRIC

HELDOUT = 1000

# Rounded from the best of 64 random settings per model, by recall@20 of the worst-off 30 % of the
# validation users of "demo" with the seeds 100 to 102. There are fewer factors than tastes, as in
# any large catalogue, so that a model cannot serve all of them equally well.
SETTINGS: dict[str, dict[str, Any]] = {
    "IALS": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.3,
        "regularization": 0.007,
    },
    "ERMMF": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.003,
        "regularization": 0.01,
    },
    "SAFER2": {
        "factors": 32,
        "iterations": 20,
        "unobserved_weight": 0.004,
        "regularization": 0.007,
        "bandwidth": 0.15,
        "tail": 0.3,
    },
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "safecf-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the models.")] = 0,
) -> None:
    """Train iALS, ERM-MF and SAFER2 on synthetic users, and compare their worst-off users."""
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from rich.console import Console  # noqa: PLC0415

    from safecf.cli import inputs, results  # noqa: PLC0415
    from safecf.models import ERMMF, IALS, SAFER2, Recommender  # noqa: PLC0415

    options = SplitOptions(heldout=HELDOUT)
    output = results.Output(
        METRIC,
        CUTOFFS,
        LEVEL,
        out / "report.html",
        out / "results.json",
        settings=options.settings() | {"command": results.command_line()},
    )
    models: dict[str, Recommender] = {
        "iALS": IALS(**SETTINGS["IALS"], random_state=seed),
        "ERM-MF": ERMMF(**SETTINGS["ERMMF"], random_state=seed),
        "SAFER2": SAFER2(**SETTINGS["SAFER2"], random_state=seed),
    }
    console = Console()
    split = inputs.load_data(DataOptions(["demo"])).split(options)
    facts = results.describe(split, "synthetic, shape 'demo'")
    console.print(", ".join(f"{name}: {value}" for name, value in facts.items()), highlight=False)
    evaluations = results.train_and_evaluate(models, split, output)
    page, numbers = results.show_results(console, evaluations, output, facts)
    console.print(f"The report, an HTML page: {page}", highlight=False)
    console.print(f"All numbers: {numbers}", highlight=False)
