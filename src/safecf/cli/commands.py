"""All commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from safecf import __version__
from safecf.cli import end_interrupted
from safecf.cli.data import app as data
from safecf.cli.demo import demo
from safecf.cli.evaluate import compare, evaluate
from safecf.cli.serve import serve
from safecf.cli.tune import tune


class Commands(TyperGroup):
    """Commands that Ctrl-C ends with one line and exit code 130, in every version of typer."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt as interrupt:
            end_interrupted(interrupt)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            end_interrupted(interrupt)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Safe collaborative filtering: recommenders that look after the worst-off users.",
)
app.command()(demo)
app.command()(evaluate)
app.command()(compare)
app.command()(tune)
app.command()(serve)
app.add_typer(data, name="data")


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"safecf {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Parse the options before a command."""
