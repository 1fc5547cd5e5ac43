"""`safecf evaluate` and `safecf compare`: how well users are served, and the worst-off."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from safecf.cli.results import describe, print_results, train_and_evaluate, write_results
from safecf.cli.sources import DATA_HELP, MODEL_HELP, load_split, make_model
from safecf.models.recommender import Recommender

Data = Annotated[str, typer.Argument(help=DATA_HELP)]
Models = Annotated[list[str], typer.Option("--model", "-m", help=MODEL_HELP)]
DataPath = Annotated[
    Path | None, typer.Option("--path", help="The data set's archive, folder or file.")
]
User = Annotated[str, typer.Option(help="The column of the users, for a file.")]
Item = Annotated[str, typer.Option(help="The column of the items, for a file.")]
HeldOut = Annotated[
    int | None,
    typer.Option(help="Users to hold out for validation, and for the test; by default a tenth."),
]
Seed = Annotated[int, typer.Option(help="Seed of the models.")]
Metric = Annotated[str, typer.Option(help="The metric to print, and the report's first.")]
Level = Annotated[float, typer.Option("--tail", help="The share of worst-off users to print.")]
Report = Annotated[Path | None, typer.Option(help="Write the tail report, an HTML page, to here.")]
Out = Annotated[Path | None, typer.Option(help="Write all numbers as JSON to here.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


def evaluate(
    data: Data,
    model: Models,
    path: DataPath = None,
    user: User = "user",
    item: Item = "item",
    heldout: HeldOut = None,
    seed: Seed = 0,
    metric: Metric = "recall@20",
    tail: Level = 0.3,
    report: Report = None,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Train models or take saved ones, score held-out users, and compare with the first model."""
    models = _named([make_model(spec, seed) for spec in model])
    split = load_split(data, path=path, user=user, item=item, heldout=heldout)
    console = Console()
    evaluations = train_and_evaluate(models, split, quiet=quiet)
    results = print_results(console, evaluations, metric, tail) or evaluations[0]
    written = write_results(
        results,
        json_path=out,
        report_path=report,
        metric=metric,
        level=tail,
        data_summary=describe(split, data),
    )
    for file in written:
        console.print(f"written: {file}", highlight=False)


def _named(models: list[tuple[str, Recommender]]) -> dict[str, Recommender]:
    """Number the models that would have the same name."""
    names = [name for name, _ in models]
    found = {}
    for place, (name, model) in enumerate(models):
        twin = names.count(name) > 1
        found[f"{name} {names[: place + 1].count(name)}" if twin else name] = model
    return found
