"""`safecf export`: the items of a model as an index for approximate search."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from safecf.checks import check_integer
from safecf.cli.asking import ModelFile, load_model
from safecf.cli.command_options import Json, Quiet, check_seed
from safecf.cli.completion import one_of

EXPORTS = ("usearch", "faiss", "npz")


def export(
    model: ModelFile,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="File of the index; the ids are written beside it."),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(EXPORTS)} (the bare vectors); by default the suffix of the file.",
            autocompletion=one_of(EXPORTS),
        ),
    ] = None,
    cosine: Annotated[
        bool,
        typer.Option(
            "--cosine",
            help="For engines that only search by cosine or distance: with one more coordinate, "
            "these rank as the inner product does.",
        ),
    ] = False,
    queries: Annotated[
        int, typer.Option(help="Number of users to compare exact search and the index on.")
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Which users these are.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Export the items of a model as an index for approximate search, and say what it gains.

    An index of usearch needs the extra "ann". For example:

    safecf export model.safetensors -o items.usearch

    safecf export model.safetensors -o items.npz --cosine
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.approximate.exporting import export, format_of  # noqa: PLC0415
    from safecf.cli.output_files import check_targets  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415
    from safecf.cli.terminal import Plain, bytes_text, print_json  # noqa: PLC0415
    from safecf.models.files import located  # noqa: PLC0415

    chosen = format_of(out, format)
    check_targets([("--out", out), ("--out", Path(f"{out}.json"))], [located(model)])
    check_seed("--seed", seed)
    check_integer("queries", queries, 0, default=1000)
    loaded = load_model(model)
    check_interrupt()
    out.parent.mkdir(parents=True, exist_ok=True)
    found = export(
        loaded, out, chosen, cosine=cosine, queries=queries, seed=seed, show_progress=not quiet
    )
    if as_json:
        verdict = None if found.check is None else found.check.verdict
        print_json({**asdict(found), "verdict": verdict})
        return
    console = Plain()
    _print(console, found)
    console.line_of(f"written: {found.path} ({bytes_text(found.bytes)})")
    console.line_of(f"written: {found.ids_path}")


def _print(console: Any, found: Any) -> None:
    from safecf.approximate.quality import milliseconds  # noqa: PLC0415
    from safecf.cli.terminal import print_facts, seconds_text  # noqa: PLC0415

    metric = {"ip": "inner product", "cos": "cosine"}[found.metric]
    told = {
        "format": f"{found.format}, {metric}",
        "items": f"{found.items:,}, each {found.dimensions} numbers",
        "built in": seconds_text(found.seconds),
    }
    check = found.check
    if check is not None:
        ways = {"exact": check.exact, "index": check.index}
        if check.recall:
            told["recall"] = ", ".join(f"{share:.3f} @ {k}" for k, share in check.recall.items())
        for name, which in {"one user": "alone", f"{check.queries:,} users": "together"}.items():
            speeds = [
                f"{way} {milliseconds(getattr(speed, which))}"
                for way, speed in ways.items()
                if speed is not None
            ]
            told[name] = ", ".join(speeds) + (" each" if which == "together" else "")
    print_facts(console, told)
    if check is not None:
        console.print(check.verdict)
