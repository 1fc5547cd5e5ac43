"""Speed on the CPU, all of it: epochs, growth, top-k and time to quality beside the peers."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks import epochs, growth, precision, quality, topk
from benchmarks.records import Options, keep, kept, origin, progress


class Part(NamedTuple):
    """One part of the page: its title, how it is measured, and how that is written."""

    title: str
    measure: Callable[[Options], dict[str, Any]]
    section: Callable[[dict[str, Any], Options], list[str]]


PARTS = {
    "ml-20m": Part(
        "One epoch, ML-20M shape", partial(epochs.measure, shape="ml-20m"), epochs.section
    ),
    "msd": Part("One epoch, MSD shape", partial(epochs.measure, shape="msd"), epochs.section),
    "growth": Part("Growth", growth.measure, growth.section),
    "topk": Part("Top-k", topk.measure, topk.section),
    "quality": Part("Time to quality", quality.measure, quality.section),
    "precision": Part("Precision and ranking", precision.measure, precision.section),
}
PEERS = ("implicit", "irspack", "numpy")


def page(options: Options) -> str:
    """Write the page from everything that has been measured."""
    blocks = ["# Speed on the CPU", *epochs.ABOUT]
    found = {name: kept(options.folder, f"cpu-{name}") for name in PARTS}
    for name, part in PARTS.items():
        record = found[name]
        blocks.append(f"## {part.title}")
        if record is None:
            blocks.append(f"Not measured yet: `python -m benchmarks cpu --part {name}`.")
        else:
            results = record["results"]
            peers = ", ".join(f"{peer} {number}" for peer, number in results["versions"].items())
            blocks.append(f"{origin(record)} Beside {peers}.")
            blocks += part.section(results, options)
    text = "\n\n".join(blocks) + "\n"
    options.pages.mkdir(parents=True, exist_ok=True)
    file = options.pages / "cpu.md"
    file.write_text(text)
    progress(f"wrote {file}")
    return text


def main(
    part: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(PARTS)}, or page to measure nothing; may be repeated."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Below 1 everything is smaller, and stays under build/.")
    ] = 1.0,
    threads: Annotated[int, typer.Option(help="Threads of everything.")] = 2,
    repeats: Annotated[int, typer.Option(help="Timed, alternating repeats.")] = 5,
) -> None:
    """Measure all parts or the named ones, keep the results, and write the page from them."""
    options = Options(scale, threads, repeats)
    chosen = part or list(PARTS)
    unknown = set(chosen) - {*PARTS, "page"}
    if unknown:
        raise typer.BadParameter(f"no part {sorted(unknown)}: try {', '.join(PARTS)} or page")
    for name in chosen:
        if name in PARTS:
            progress(f"{name} ...")
            results = PARTS[name].measure(options)
            results["versions"] = {peer: version(peer) for peer in PEERS}
            keep(options.folder, f"cpu-{name}", results)
    print(page(options))
