"""`safecf serve`: a saved model over HTTP, with a page to try it."""

import os
import signal
import warnings
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safecf.cli.asking import KnownData
from safecf.cli.command_options import flag, with_records
from safecf.cli.completion import SUFFIX, name_or_file, one_of
from safecf.errors import message_of
from safecf.serving.settings import FILES, LOGS, Settings

TOKEN = "SAFECF_TOKEN"


def _option(name: str, setting: Any) -> Any:
    """Return a field of the settings as an option; their defaults and help are used."""
    more: dict[str, Any] = {"help": setting.metadata["help"]}
    if name in ("model", "baseline"):
        more["autocompletion"] = name_or_file((), SUFFIX)
    if name == "model":
        return name, Annotated[Path, typer.Argument(**more)]
    kind: Any = type(setting.default)
    if name in FILES:
        kind = Path | None
    elif name == "device":
        kind = str | None
    elif name == "token":
        kind, more = str | None, more | {"envvar": TOKEN}
    elif name == "allow_host":
        return name, Annotated[list[str], typer.Option(**more)], field(default_factory=list)
    elif name == "log":
        more["autocompletion"] = one_of(LOGS)
    return name, Annotated[kind, typer.Option(**more)], setting.default


if TYPE_CHECKING:
    ServeOptions = Settings
else:
    ServeOptions = make_dataclass(
        "ServeOptions",
        [_option(each.name, each) for each in fields(Settings) if each.metadata],
        frozen=True,
    )


def _check_data(data: KnownData) -> None:
    """Raise if there are options of the data, but no data."""
    given = [name for name, value in vars(data).items() if value is not None and name != "data"]
    if given and not data.data:
        raise ValueError(
            f"{flag(given[0])} says how DATA is read, and there is none; give the "
            "data after the model"
        )


@with_records
def serve(options: ServeOptions, data: KnownData) -> None:
    """Serve recommendations over HTTP, and a page to try them in the browser.

    It ends on Ctrl-C or SIGTERM, after what has come is answered. For example:

    safecf serve safer2.safetensors --baseline ials.safetensors --items titles.parquet

    safecf serve safer2.safetensors clicks.parquet --user visitor --item page

    curl -d '{"history": [1, 50], "k": 5}' -H 'Content-Type: application/json'
    http://127.0.0.1:8000/recommend
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli.inputs import load_data  # noqa: PLC0415
    from safecf.cli.running import USER_ERROR, USER_ERRORS, as_options  # noqa: PLC0415
    from safecf.serving import run  # noqa: PLC0415
    from safecf.serving.log import Log  # noqa: PLC0415

    log = Log(options.log)

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        log.line(as_options(str(message)), "warning")

    warnings.showwarning = warn
    try:
        if options.token is None and os.environ.get(TOKEN) == "":
            raise ValueError(f"{TOKEN} is empty, and would protect nothing; set it, or unset it")
        _check_data(data)
        read = (lambda: load_data(data).interactions()) if data.data else None
        settings = Settings(**vars(options), data=read)
        if settings.token is None and not settings.is_local:
            warn(f"anybody who reaches {settings.host} may ask; set {TOKEN}")
        run(settings, log.line)
    except USER_ERRORS as error:
        if options.log != "json":
            raise
        log.line(as_options(message_of(error)), "error")
        raise typer.Exit(USER_ERROR) from None
    except KeyboardInterrupt:
        if options.log != "json":
            raise
        raise typer.Exit(128 + signal.SIGINT) from None
