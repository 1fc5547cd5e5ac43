"""`safecf doctor`: whether all that is installed here works, and what a data size needs."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from safecf.cli.command_options import Json

FAILED = 1  # exit code
MARKS = {True: "ok", None: "-", False: "FAILS"}

Size = Annotated[int | None, typer.Option(rich_help_panel="What data of this size needs")]


def doctor(
    users: Size = None,
    items: Size = None,
    interactions: Size = None,
    factors: Annotated[
        int, typer.Option(rich_help_panel="What data of this size needs", help="Of the model.")
    ] = 256,
    as_json: Json = False,
) -> None:
    """Examine this installation: versions, machine, extras, data, and a self-test in seconds.

    The exit code is 1 if something that is installed does not work. For example:

    safecf doctor

    safecf doctor --users 1000000 --items 50000 --interactions 100000000 --factors 256
    """
    from safecf import doctor as library  # noqa: PLC0415
    from safecf.cli.terminal import Plain, print_json  # noqa: PLC0415

    sizes = {"users": users, "items": items, "interactions": interactions}
    missing = [name for name, value in sizes.items() if value is None]
    if missing and len(missing) < len(sizes):
        raise ValueError(f"--{missing[0]} is missing; give --users, --items and --interactions")
    needed = None
    if users is not None and items is not None and interactions is not None:
        needed = library.needs(users, items, interactions, factors)
    found = library.examine()
    broken = [each for section in found.values() for each in section if each.works is False]
    if as_json:
        sections = {name: [asdict(each) for each in section] for name, section in found.items()}
        record: dict[str, Any] = {"works": not broken, **sections}
        if needed is not None:
            record["needs"] = {**sizes, "factors": factors, **asdict(needed)}
        print_json(record)
    else:
        _print(Plain(), found)
        if needed is not None:
            _print_needs(Plain(), needed, users, items, interactions, factors)
        names = ", ".join(each.name for each in broken)
        Plain().line_of(f"does not work: {names}" if broken else "all that is installed works")
    if broken:
        raise typer.Exit(FAILED)


def _print(console: Any, found: dict[str, Any]) -> None:
    from safecf.cli.terminal import print_facts  # noqa: PLC0415

    width = max(len(each.name) for section in found.values() for each in section)
    for title, section in found.items():
        console.print(title, style="bold")
        print_facts(
            console,
            {f"  {MARKS[each.works]:<5} {each.name:<{width}}": each.found for each in section},
        )


def _print_needs(console: Any, needed: Any, *sizes: Any) -> None:
    from safecf.cli.terminal import bytes_text, print_facts  # noqa: PLC0415
    from safecf.free_memory import available_bytes  # noqa: PLC0415

    users, items, interactions, factors = sizes
    console.print(
        f"{users:,} users, {items:,} items, {interactions:,} interactions, {factors} factors",
        style="bold",
    )
    told: dict[str, object] = {
        "  to read it": f"about {bytes_text(needed.reading)} of memory",
        "  to train on it": f"{bytes_text(needed.training)} of memory",
        "  the model's file": bytes_text(needed.file),
    }
    free, most = available_bytes(), max(needed.reading, needed.training)
    if free is not None:
        verdict = "enough" if free >= most else "too little: lower factors, or drop rare users"
        told["  free here"] = f"{bytes_text(free)}, {verdict}"
    print_facts(console, told)
