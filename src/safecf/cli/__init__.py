"""The command line: `safecf COMMAND`."""

import re
import sys
import warnings
from dataclasses import fields
from typing import Annotated

import typer

from safecf import __version__
from safecf.cli.command_options import DataOptions, RepeatedSplitOptions
from safecf.cli.data import app as data
from safecf.cli.demo import demo
from safecf.cli.evaluate import compare, evaluate
from safecf.cli.tune import tune
from safecf.errors import ConvergenceWarning, FileFormatError, ModelFitError, ParameterWarning

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Safe collaborative filtering: recommenders that look after the worst-off users.",
)
app.command()(demo)
app.command()(evaluate)
app.command()(compare)
app.command()(tune)
app.add_typer(data, name="data")

OPTIONS = [field.name for record in (DataOptions, RepeatedSplitOptions) for field in fields(record)]
OPTIONS += ["metric", "trials", "minutes", "study", "pick"]  # others are options of models, too
# errors that the user can correct: shown as one line, without a traceback
USER_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    ImportError,  # an extra is not installed
    MemoryError,
    FileFormatError,
    ModelFitError,
)
# arguments in messages of the library that are options of the command line
ARGUMENT = re.compile(rf"\b({'|'.join(OPTIONS)})=(?=(\S)?)")


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


def main() -> None:
    """Run `safecf`."""
    run(app)


def run(app: typer.Typer) -> None:
    """Run a command line; errors that the user can fix are one line on stderr, and exit code 2."""
    with warnings.catch_warnings():
        for category in (ParameterWarning, ConvergenceWarning):
            warnings.simplefilter("default", category)
        warnings.showwarning = _show_warning
        try:
            app()
        except USER_ERRORS as error:
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            print(f"safecf: {as_options(str(text))}", file=sys.stderr)
            sys.exit(2)


def as_options(message: str) -> str:
    """Rewrite arguments of the library in a message as options.

    >>> as_options("there is no column 'user'; try user='visitor'")
    "there is no column 'user'; try --user 'visitor'"
    """

    def option(found: re.Match[str]) -> str:
        return "--" + found[1].replace("_", "-") + (" " if found[2] else "")

    return ARGUMENT.sub(option, message)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"safecf: warning: {as_options(str(message))}", file=sys.stderr)
