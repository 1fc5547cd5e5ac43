"""The command line: `safecf COMMAND`."""

import typer

from safecf.cli.demo import demo

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Safe collaborative filtering: recommenders that look after the worst-off users.",
)


@app.callback()
def main() -> None:
    """Keep the commands named, also while there is only one of them."""


app.command()(demo)
