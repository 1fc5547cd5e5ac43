"""`safecf demo`: iALS, ERM-MF and SAFER2 side by side, on people some of whom have rare tastes."""

from pathlib import Path
from typing import Annotated

import typer

from safecf.cli.options import DataOptions, SplitOptions


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path(
        "safecf-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the models.")] = 0,
) -> None:
    """Train iALS, ERM-MF and SAFER2 on synthetic people, and see who is left behind."""
    # Here, not above: the command line starts fast, and Ctrl-C ends it at any time.
    from rich.console import Console  # noqa: PLC0415

    from safecf.cli import results, sources  # noqa: PLC0415
    from safecf.data.synthetic import DEMO_SETTINGS  # noqa: PLC0415
    from safecf.models import ERMMF, IALS, SAFER2, Recommender  # noqa: PLC0415

    options = SplitOptions(heldout=1000)
    output = results.Output(
        "recall@20",
        (20, 50, 100),
        0.3,
        out / "report.html",
        out / "results.json",
        settings=options.settings() | {"command": results.command_line()},
    )
    models: dict[str, Recommender] = {
        "iALS": IALS(**DEMO_SETTINGS["IALS"], random_state=seed),
        "ERM-MF": ERMMF(**DEMO_SETTINGS["ERMMF"], random_state=seed),
        "SAFER2": SAFER2(**DEMO_SETTINGS["SAFER2"], random_state=seed),
    }
    console = Console()
    split = sources.load_data(DataOptions(["demo"])).split(options)
    facts = results.describe(split, "synthetic, shape 'demo'")
    console.print(", ".join(f"{name}: {value}" for name, value in facts.items()), highlight=False)
    evaluations = results.train_and_evaluate(models, split, output)
    page, numbers = results.show_results(console, evaluations, output, facts)
    console.print(f"The report, for your browser: {page}", highlight=False)
    console.print(f"All numbers: {numbers}", highlight=False)
