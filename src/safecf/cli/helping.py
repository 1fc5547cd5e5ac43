"""How `--help` shows the types of options."""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainTypes:
    """Shows flags without a type, and lists with that of one value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments."""
        return [_plain(param) for param in super().get_params(ctx)]  # type: ignore[misc]


class Command(PlainTypes, TyperCommand):
    """A command."""


class Group(PlainTypes, TyperGroup):
    """Several commands."""


def _plain(param: Any) -> Any:
    """Undo what newer typers show: <bool> of a flag, which takes no value, and <list[str]>."""
    shown = getattr(type(param), "display_type", None)
    if shown is not None:
        is_flag = getattr(param, "is_flag", False)

        def display_type(ctx: Any) -> str | None:
            return None if is_flag else re.sub(r"list\[(.*)\]", r"\1", shown(param, ctx))

        param.display_type = display_type
    return param
