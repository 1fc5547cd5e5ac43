"""`safecf serve`: a saved model over HTTP, with a page to try it."""

import os
from pathlib import Path
from typing import Annotated

import typer

TOKEN = "SAFECF_TOKEN"


def serve(
    model: Annotated[Path, typer.Argument(help="File of a saved model.")],
    baseline: Annotated[
        Path | None, typer.Option(help="File of another model, to compare with.")
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            help="Parquet or CSV file of the items: item (or id), title, and more such as genres."
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(help="What safecf compare --out has written, for the tail curves."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every one of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN,
            help="Requests need the header Authorization: Bearer TOKEN. Better given as the "
            "variable SAFECF_TOKEN: other users of the machine see command lines.",
        ),
    ] = None,
    max_history: Annotated[int, typer.Option(help="Most items of a history.")] = 1000,
    max_k: Annotated[int, typer.Option(help="Most items of an answer.")] = 1000,
    max_body: Annotated[int, typer.Option(help="Most bytes of a request's body.")] = 2**20,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request is cut off.")] = 30,
    watch: Annotated[
        float,
        typer.Option(
            help="Seconds between looks at the files; changed ones are loaded. 0: on SIGHUP and "
            "POST /reload only."
        ),
    ] = 2,
    log: Annotated[
        str, typer.Option(help="A line per request on stderr: none, text or json.")
    ] = "none",
) -> None:
    """Serve recommendations over HTTP, and a page to try them in the browser.

    It ends on Ctrl-C or SIGTERM, after what has come is answered. For example:

    safecf serve safer2.safetensors --baseline ials.safetensors --items titles.parquet

    curl -d '{"history": [1, 50], "k": 5}' -H 'Content-Type: application/json'
    http://127.0.0.1:8000/recommend
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli.terminal import Plain  # noqa: PLC0415
    from safecf.serving import Settings, run  # noqa: PLC0415

    if token is None and os.environ.get(TOKEN) == "":
        raise ValueError(f"{TOKEN} is empty, and would protect nothing; set it, or unset it")
    settings = Settings(
        model,
        baseline,
        items,
        evaluation,
        host=host,
        port=port,
        token=token,
        max_history=max_history,
        max_k=max_k,
        max_body=max_body,
        timeout=timeout,
        watch=watch,
        log=log,
    )
    console = Plain(stderr=True)

    def announce(address: str) -> None:
        console.line_of(f"safecf: serving {model} at {address} (Ctrl-C ends it)")
        if token is None and host not in ("127.0.0.1", "::1", "localhost"):
            console.line_of(
                f"safecf: warning: anybody who reaches {host} may ask; set SAFECF_TOKEN"
            )

    run(settings, announce)
