"""The command line: `safecf COMMAND`."""

import sys

import typer

from safecf.cli.data import app as data
from safecf.cli.demo import demo
from safecf.cli.evaluate import evaluate
from safecf.errors import FileFormatError, ModelFitError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Safe collaborative filtering: recommenders that look after the worst-off users.",
)
app.command()(demo)
app.command("evaluate")(evaluate)
app.command("compare")(evaluate)
app.add_typer(data, name="data")


def main() -> None:
    """Run a command; what the user can mend is one line on stderr, and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, KeyError, OSError, FileFormatError, ModelFitError) as problem:
        print(f"safecf: {problem}", file=sys.stderr)
        sys.exit(2)
