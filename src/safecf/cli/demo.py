"""`safecf demo`: iALS, ERM-MF and SAFER2 side by side, on people some of whom have rare tastes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from safecf.cli.results import describe, print_results, train_and_evaluate, write_results
from safecf.cli.sources import load_split
from safecf.data.synthetic import DEMO_SETTINGS
from safecf.models import ERMMF, IALS, SAFER2, Recommender

METRIC, LEVEL = "recall@20", 0.3


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "safecf-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the models.")] = 0,
) -> None:
    """Train iALS, ERM-MF and SAFER2 on synthetic people, and see who is left behind."""
    console = Console()
    split = load_split("demo", heldout=1000)
    facts = describe(split, "synthetic, shape 'demo'")
    console.print(", ".join(f"{name}: {value}" for name, value in facts.items()), highlight=False)
    models: dict[str, Recommender] = {
        "iALS": IALS(**DEMO_SETTINGS["IALS"], random_state=seed),
        "ERM-MF": ERMMF(**DEMO_SETTINGS["ERMMF"], random_state=seed),
        "SAFER2": SAFER2(**DEMO_SETTINGS["SAFER2"], random_state=seed),
    }
    evaluations = train_and_evaluate(models, split)
    results = print_results(console, evaluations, METRIC, LEVEL) or evaluations[0]
    written = write_results(
        results,
        json_path=out / "results.json",
        report_path=out / "report.html",
        metric=METRIC,
        level=LEVEL,
        data_summary=facts,
    )
    console.print(f"The report, for your browser: {written[0]}", highlight=False)
    console.print(f"All numbers: {written[1]}", highlight=False)
