"""Pages of several parts, each measured by itself and kept, so that all need not be at once.

Nothing that measures imports Typer, which a machine lent for measuring may lack.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.records import Options, keep, kept, origin, progress

HEADING = "\n## "


class Part(NamedTuple):
    """One part of a page: its title, how it is measured, and how that is written."""

    title: str
    measure: Callable[[Options], dict[str, Any]]
    section: Callable[[dict[str, Any], Options], list[str]]


@dataclass(frozen=True)
class Parts:
    """A benchmark, the name of its page, and what it consists of.

    `with_what` is the word before the versions of what was measured.
    """

    name: str
    title: str
    about: Sequence[str]
    parts: Mapping[str, Part]
    with_what: str = "Beside"

    def run(
        self, chosen: Sequence[str] | None, options: Options, versions: Callable[[], dict[str, str]]
    ) -> None:
        """Measure all parts or the chosen ones, keep the results, and write the page.

        A part that fails does not keep the others from being measured; the exit code is 1 then,
        as it is where a part has found a `failure`.
        """
        names = list(chosen or self.parts)
        unknown = set(names) - {*self.parts, "page"}
        if unknown:
            known = ", ".join(self.parts)
            raise SystemExit(f"no part {sorted(unknown)}: try {known} or page")
        failed = []
        for name in names:
            if name == "page":
                continue
            progress(f"{name} ...")
            try:
                results = self.parts[name].measure(options)
            except Exception:
                progress(traceback.format_exc())
                failed.append(name)
                continue
            results["versions"] = versions()
            keep(options.folder, f"{self.name}-{name}", results)
            if results.get("failure"):
                failed.append(name)
        print(self.page(options))
        if failed:
            raise SystemExit(f"failed: {', '.join(failed)}")

    def page(self, options: Options) -> str:
        """Write the page from everything that has been kept; other sections stay as they are."""
        file = options.pages / f"{self.name}.md"
        blocks, before = [f"# {self.title}", *self.about], sections(file)
        for name, part in self.parts.items():
            record = kept(options.folder, f"{self.name}-{name}")
            blocks.append(f"## {part.title}")
            if record is not None:
                results = record["results"]
                numbers = results["versions"].items()
                listed = ", ".join(f"{what} {number}" for what, number in numbers)
                blocks.append(f"{origin(record)} {self.with_what} {listed}.")
                blocks += part.section(results, options)
            elif part.title in before:
                blocks.append(before[part.title])
            else:
                command = f"python -m benchmarks {self.name} --part {name}"
                blocks.append(f"Not measured yet: `{command}`.")
        text = "\n\n".join(blocks) + "\n"
        options.pages.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        progress(f"wrote {file}")
        return text


def sections(file: Path) -> dict[str, str]:
    """Return the sections of a page by their titles; none if there is no page."""
    if not file.exists():
        return {}
    found = file.read_text().split(HEADING)[1:]
    return {title: text.strip() for title, _, text in (each.partition("\n") for each in found)}
