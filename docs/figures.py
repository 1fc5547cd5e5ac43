"""Figures in the documents: `python docs/figures.py` writes them, `--check` only compares.

docs/figures.toml names the cell of docs/results that each figure comes from.
"""

import argparse
import difflib
import re
import sys
import tomllib
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
NUMBER = r"[+-]?[\d,]*\.?\d+(?:e[+-]\d+)?"
INTERVAL = rf"\[{NUMBER},\s+{NUMBER}\]"
SLOT = re.compile(r"(\[#\])(\*?)|(\*?)([+.-]?)#(\d?)")  # of a phrase: an interval, or a figure
LINK = re.compile(r"\]\(([^)\s#]+\.md)[^)]*\)")
CODE = re.compile(r"^( *)```.*?^\1```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
DECIMAL = re.compile(r"(?<![\w.])[+-]?\d*\.\d+(?![\w.])")


class Figure(NamedTuple):
    """A number as its page writes it, and the interval behind it."""

    number: str
    interval: str = ""

    @property
    def ends(self) -> list[str]:
        """The ends of the interval."""
        return [end.removeprefix("+") for end in re.findall(NUMBER, self.interval)]

    def bold(self, asked: str) -> str:
        """Return the marks of bold if they are asked for, and the interval excludes zero."""
        low, high = (float(end) for end in self.ends or (0, 0))
        return "**" if asked and low * high > 0 else ""

    def written(self, sign: str, digits: str) -> str:
        """Return the number in a form that docs/figures.toml explains."""
        text = self.number.replace(",", "") if digits else self.number
        if digits:
            text = str(Decimal(text).quantize(Decimal(1).scaleb(-int(digits)), ROUND_HALF_UP))
        text = text.removeprefix("+")
        if sign == "+":
            return text if text.startswith("-") else f"+{text}"
        if text.startswith("-") != (sign == "-"):
            raise LookupError(f"the sign of {text} makes it wrong")
        return text.removeprefix("-").removeprefix("0" if sign == "." else "")


def figure_after(word: str, cell: str) -> Figure:
    """Return the first figure behind a word of a cell."""
    found = re.search(rf"{re.escape(word)}\s*({NUMBER})(?:.*?({INTERVAL}))?", cell)
    if not found:
        raise LookupError(f"no figure in {cell!r}")
    return Figure(*found.groups(default=""))


def match_in(phrase: str, text: str) -> re.Match[str]:
    """Find a phrase, with a group for each slot; lines may break anywhere."""
    pattern, end = "", 0
    for slot in SLOT.finditer(phrase):
        group = INTERVAL if slot[1] else NUMBER
        pattern += spaced(phrase[end : slot.start()]) + rf"(\**{group}\**)"
        end = slot.end()
    found = [*re.finditer(pattern + spaced(phrase[end:]), text)]
    if len(found) != 1:
        raise LookupError(f"stands {len(found)} times in the text")
    return found[0]


def spaced(words: str) -> str:
    """Return a pattern for words, with any space between them."""
    return re.sub(r"(?:\\\s)+", r"\\s+", re.escape(words))


def fill(phrase: str, figures: list[Figure]) -> list[str]:
    """Return what belongs into the slots of a phrase."""
    slots = [slot.groups() for slot in SLOT.finditer(phrase)]
    if len(figures) != sum(not interval for interval, *_ in slots):
        raise LookupError(f"has {len(figures)} sources")
    filled, rest, figure = [], iter(figures), Figure("")
    for interval, close, bold, sign, digits in slots:
        if interval:
            filled.append(f"[{', '.join(figure.ends)}]{figure.bold(close)}")
        else:
            figure = next(rest)
            filled.append(figure.bold(bold) + figure.written(sign, digits))
    return filled


def lookup(source: str, names: dict[str, str]) -> list[Figure]:
    """Return the figures of a source."""
    place, *parts = source.split(" > ")
    place, *row = names.get(place, place).split(" > ")
    page, _, section = place.partition("#")
    text = (RESULTS / f"{page}.md").read_text()
    match [*row, *parts]:
        case [phrase]:
            return [figure_after("", slot) for slot in match_in(phrase, text).groups()]
        case [row_name, columns, *word] if section in text:
            cells = cells_of(text[text.index(section) :], row_name, columns.split("; "))
            return [figure_after("".join(word), cell) for cell in cells]
    raise LookupError(f"no {source!r}")


def cells_of(text: str, row: str, columns: list[str]) -> list[str]:
    """Return cells of the first table with this row and these columns."""
    heads: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
        heads = (heads or cells) if cells else []
        if f"{' | '.join(cells)} |".startswith(f"{row} |"):
            named = [column.split(" & ") for column in columns]
            if {each for parts in named for each in parts} <= {*heads}:
                return [" ".join(cells[heads.index(each)] for each in parts) for parts in named]
    raise LookupError(f"no row {row!r} with {columns}")


def rewrite(
    text: str, phrases: dict[str, list[str]], find: Callable[[str], list[Figure]]
) -> tuple[str, str, list[str]]:
    """Return a text with today's figures, what no phrase covers of it, and what is wrong."""
    rest, wrong = text, []
    for phrase, sources in phrases.items():
        try:
            found = match_in(phrase, text)
            rest = rest.replace(found[0], "")
            filled = fill(phrase, [figure for source in sources for figure in find(source)])
        except LookupError as error:
            wrong.append(f"{phrase!r}: {error}")
            continue
        for slot, new in reversed([*enumerate(filled, 1)]):
            if found[slot].split() != new.split():
                text = text[: found.start(slot)] + new + text[found.end(slot) :]
    return text, rest, wrong


def without_source(rest: str, folder: Path) -> list[str]:
    """Return the decimals beside links to results, in the same paragraph or the table below."""
    blocks = re.split(r"\n\s*\n(?!\|)|\n(?=- )", CODE.sub("", rest))
    pages = [[(folder / link).resolve() for link in LINK.findall(block)] for block in blocks]
    return [
        number
        for block, cited in zip(blocks, pages, strict=True)
        if any(page.parent == RESULTS for page in cited)
        for number in DECIMAL.findall(LINK.sub("", block))
    ]


def main() -> None:
    """Write the documents, or compare them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="change nothing")
    check = options.parse_args().check
    documents = tomllib.loads((ROOT / "docs" / "figures.toml").read_text())
    names, failed = documents.pop("names"), False
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), RESULTS / "index.md"]
    for page in pages:
        name, text = str(page.relative_to(ROOT)), page.read_text()
        phrases = documents.pop(name, {})
        new, rest, wrong = rewrite(text, phrases, lambda source: lookup(source, names))
        wrong += [f"{number} has no source" for number in without_source(rest, page.parent)]
        sys.stdout.writelines(f"{name}: {each}\n" for each in wrong)
        lines = text.splitlines(keepends=True), new.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(*lines, name, name, n=0))
        failed |= bool(wrong) or (check and new != text)
        if not check:
            page.write_text(new)
    for name in documents:
        print(f"docs/figures.toml: there is no {name}")
    sys.exit(failed or bool(documents))


if __name__ == "__main__":
    main()
