"""Figures on pages are those of the results that they cite."""

import doctest
import functools
import re
import sys

import pytest

from tests.docs.blocks import DOCS, FENCE, LINK, ROOT
from tests.docs.sources import SOURCES, Cell

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "results" / "index.md"]
NUMBER = re.compile(r"(?<![\w.^])[+-]?(?<![\w.^])\d*\.?\d+(?![\w.]*\d)")
INTERVAL = r"\[[^\[\]]*\]"
ENTRY = re.compile(rf"({NUMBER.pattern})((?:[\s%|*]*{INTERVAL})*)")


def plain(text):
    """Return a text without the commas of thousands."""
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)


def figures(text):
    """Return the numbers of a text as they are written, with the signs that they have."""
    return NUMBER.findall(plain(text))


@functools.cache
def entries(text):
    """Return the numbers of a text, each with the intervals that follow it.

    >>> entries("| +1.0 % | [+0.9, +1.2] | [+0.8, +1.3] | 3 |")
    [('+1.0', [['+0.9', '+1.2'], ['+0.8', '+1.3']]), ('3', [])]
    """
    return [_entry(*found.groups()) for found in ENTRY.finditer(plain(text))]


def _entry(value, intervals):
    return value, [figures(each) for each in re.findall(INTERVAL, intervals)]


def is_rounded(figure, known):
    """Whether a figure is a number, rounded: 1.2 may be 1.21; its sign counts if it has one."""
    digits = len(figure.partition(".")[2])
    known = float(known) if figure[0] in "+-" else abs(float(known))
    return abs(known - float(figure)) <= 0.5000001 * 10.0**-digits


def is_entry(claimed, known):
    """Whether an entry is that of a page, with one of the intervals there if it has one."""
    ends = [each for interval in claimed[1] for each in interval]
    return is_rounded(claimed[0], known[0]) and (
        not ends or any(all(map(is_rounded, ends, interval)) for interval in known[1])
    )


def stands(name, claim, line):
    """Whether a line has a name, and the entries in their order."""
    rest = iter(entries(line))
    return name in line and all(any(is_entry(each, known) for known in rest) for each in claim)


def match(phrase, text):
    """Return the place of a phrase in a text, with the two groups of ENTRY for each #."""
    words = [re.sub(r"(?:\\\s)+", r"\\s+", re.escape(part)) for part in phrase.split("#")]
    found = [*re.finditer(ENTRY.pattern.join(words), text)]
    assert len(found) == 1, f"stands {len(found)} times, see tests/docs/sources.py: {phrase}"
    return found[0]


def phrase_entries(found):
    """Return the entries in the place of a phrase."""
    groups = found.groups()
    return [_entry(*pair) for pair in zip(groups[::2], groups[1::2], strict=True)]


def cell(page, above, row, column):
    """Return the entries of a cell."""
    text = (DOCS / "results" / f"{page}.md").read_text()
    heads = None
    for line in text[text.index(above) :].splitlines():
        cells = [each.strip(" *") for each in line.split("|")[1:-1]]
        if not cells:
            heads = None
        elif heads is None:
            heads = cells
        elif column in heads and f"{' | '.join(cells)} |".startswith(f"{row} |"):
            return entries(cells[heads.index(column)])
    raise LookupError(f"{page}: no row {row!r} with a column {column!r} below {above!r}")


def known(source):
    """Return, for each # of a source, the entries that it may be."""
    if isinstance(source, Cell):
        return [cell(*source)]
    text = plain((DOCS / "results" / f"{source.page}.md").read_text())
    return [[entry] for entry in phrase_entries(match(source.text, text))]


def check_sources(name, text):
    """Return what is wrong of the figures in SOURCES, and the text without these figures."""
    wrong, text = [], plain(text)
    for phrase, sources in SOURCES.get(name, {}).items():
        found = match(phrase, text)
        choices = [choice for source in sources for choice in known(source)]
        for entry, choice in zip(phrase_entries(found), choices, strict=True):
            if not any(is_entry(entry, each) for each in choice):
                wrong.append((phrase, entry, choice))
        text = text.replace(found[0], re.sub(ENTRY, "", found[0]))
    return wrong, text


def cited(page, text):
    """Yield the paragraphs of a page that cite results, each with the lines of the cited pages."""
    found = []
    for block in re.split(r"\n\s*\n", FENCE.sub("", text)):
        if block.startswith("|") and found:  # a table belongs to the words before it
            found[-1] += f"\n\n{block}"
        else:
            found += re.split(r"\n(?=- |\d+\. )", block)
    for paragraph in found:
        pages = {(page.parent / each).resolve() for each in LINK.findall(paragraph)}
        results = [each for each in pages if each.parent == DOCS / "results" and each != page]
        results = [each for each in results if each.suffix == ".md"]
        if results:
            words = re.sub(r"`([\w.]*)[^`]*`|\]\([^)]*\)", r"\1", paragraph)
            yield words, "\n".join(each.read_text() for each in results).lower().splitlines()


def claims(text):
    """Yield the sentences, and the rows of the table, each as a name and what it claims.

    Of a row, the name is its first word, and each cell with a decimal is a claim; a sentence has no
    name, and each decimal in it is one.

    >>> [*claims("It gains 4.3 % [2.3, 6.3].\\n\\n| | A |\\n|---|---|\\n| demo, long | 1.2, 3.4 |")]
    [('', [[('4.3', [['2.3', '6.3']])]]), ('demo', [[('1.2', []), ('3.4', [])]])]
    """
    prose, _, table = text.partition("\n\n|")
    for sentence in re.split(r"(?<=[.;])\s+", prose):
        yield "", [[entry] for entry in entries(sentence) if "." in entry[0]]
    for row in table.splitlines()[2:]:
        _, label, *cells = row.split("|")
        found = [entries(each) for each in cells]
        name = re.search(r"[\w.-]*", label.strip(" `"))[0].lower()
        yield name, [claim for claim in found if any("." in value for value, _ in claim)]


def is_told(name, claims, place, lines):
    """Whether a claim stands on a line, with its interval or together with its neighbour."""
    claim = claims[place]
    together = [claim] if len(claim) > 1 or claim[0][1] else []
    together += [before + claim for before in claims[max(place - 1, 0) : place]]
    together += [claim + after for after in claims[place + 1 : place + 2]]
    return any(stands(name, each, line) for each in together for line in lines)


def problems(page, text):
    """Return the figures of a page that are not those of the results."""
    wrong, rest = check_sources(page.name, text)
    for paragraph, lines in cited(page, rest):
        for name, found in claims(paragraph):
            wrong += [
                (name, claim, paragraph)
                for place, claim in enumerate(found)
                if not is_told(name, found, place, lines)
            ]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_on_the_pages_that_they_cite(page):
    """With their intervals, with their neighbours, or in the cells of SOURCES."""
    assert problems(page, page.read_text()) == []


def test_a_figure_is_found_with_its_row_and_its_interval():
    line = "| ml-1m | iALS | 0.3649 | -1.3 [-2.0, +0.1] | 0.4 | [0.2, 0.5] | [0.1, 0.6] |".lower()

    def found(name, text):
        return stands(name, entries(text), line)

    assert found("ml-1m", ".365")
    assert found("", "1.3 % [2.0, 0.1]")
    assert found("ials", "-1.3 [-2.0, +0.1], 0.4 [0.1, 0.6]")
    assert not found("demo", ".365")
    assert not found("ml-1m", ".364")
    assert not found("", "+1.3 [2.0, 0.1]")
    assert not found("", "1.3 [0.2, 0.5]")
    assert not found("", "0.4 [0.2, 0.6]")
    assert not found("", "0.40, 1.3")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("It gains 1.4 % and 2.8 %.", True),
        ("It gains 1.4 % [1.2, 1.7].", True),
        ("It gains 1.4 % and 0.6 %.", False),
        ("It gains 1.4 %. It loses 2.8 %.", False),
        ("It gains 1.4 % [1.2, 1.8].", False),
        ("Gains:\n\n| | mean | tail |\n|---|---|---|\n| a, tuned | 1.4 | 2.8 |", True),
        ("Gains:\n\n| | mean | tail |\n|---|---|---|\n| b, tuned | 1.4 | 2.8 |", False),
        ("Gains:\n\n| | mean | tail |\n|---|---|---|\n| a, tuned | 1.4 | 2.9 |", False),
    ],
)
def test_a_figure_is_told_with_its_interval_or_its_neighbour(text, right):
    lines = ["| a | 1.4 [1.2, 1.7] | 2.8 |", "| b | 0.6 | 1.4 |"]
    told = [
        is_told(name, found, place, lines)
        for name, found in claims(text)
        for place in range(len(found))
    ]
    assert told
    assert all(told) == right


def test_sources_are_compared_with_their_cells():
    text = (DOCS / "method.md").read_text()
    assert check_sources("method.md", text)[0] == []
    [(phrase, entry, choice)] = check_sources("method.md", text.replace("of 1.2 s", "of 1.3 s"))[0]
    assert phrase in SOURCES["method.md"]
    assert (entry, choice) == (("1.3", []), [("1.21", [])])
    with pytest.raises(AssertionError, match="stands 0 times"):
        check_sources("method.md", text.replace("on two cores", "on two CPUs"))
    with pytest.raises(LookupError, match="no row 'nobody'"):
        cell("cpu", "One epoch, ML-20M shape", "nobody", "seconds, median")


def test_the_helpers_do_what_their_examples_say():
    found = doctest.testmod(sys.modules[__name__])
    assert (found.failed, found.attempted > 1) == (0, True)
