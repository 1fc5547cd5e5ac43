"""All commands."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from safecf import __version__
from safecf.cli import end_interrupted
from safecf.cli.command_options import reflowed
from safecf.cli.data import app as data
from safecf.cli.demo import demo
from safecf.cli.doctor import doctor
from safecf.cli.evaluate import compare, evaluate
from safecf.cli.export import export
from safecf.cli.fit import fit
from safecf.cli.helping import Command, Group
from safecf.cli.recommend import recommend
from safecf.cli.running import named_options
from safecf.cli.serve import serve
from safecf.cli.similar import explain, similar
from safecf.cli.tune import tune


class Commands(Group):
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
    epilog="Exit codes: 0 done; 1 safecf doctor found something that does not work; 2 wrong use, "
    "or data and files that cannot be used; 130 Ctrl-C; 141 nobody reads the output any more.",
)
MODELS, ANSWERS, HERE = "Data and models", "Answers of a saved model", "This installation"
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    MODELS: (fit, evaluate, compare, tune),
    ANSWERS: (recommend, similar, explain, export, serve),
    HERE: (demo, doctor),
}
app.add_typer(data, name="data", rich_help_panel=MODELS)
for panel, commands in PANELS.items():
    for command in commands:
        shown = app.command(cls=Command, help=reflowed(command), rich_help_panel=panel)
        shown(named_options(command))


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
