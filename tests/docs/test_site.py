"""The parts of the site that mkdocs does not check: links of the README, pictures, hooks."""

import re
import runpy
import tomllib

import numpy as np
import pytest

from tests.docs.blocks import DOCS, FENCE, ROOT

HOOKS = runpy.run_path(str(DOCS / "site_hooks.py"))
TEXTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
NUMBER = re.compile(r"(?<![\w.^])\d*\.?\d+(?![\w.]*\d)")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    """As they are followed in a checkout; `make docs` checks those of the site, with anchors."""
    targets = LINK.findall(FENCE.sub("", page.read_text()))
    outside = re.compile(r"[a-z]+:")
    missing = [each for each in targets if not outside.match(each)]
    missing = [each for each in missing if not (page.parent / each).exists()]
    assert missing == []


def test_links_are_moved_to_the_pages_of_the_site():
    relink, pages = HOOKS["relink"], {"data.md", "results/cpu.md", "security.md", "icon.svg"}
    assert relink("[d](docs/data.md#ids)", "README.md", pages) == "[d](data.md#ids)"
    assert relink("![i](docs/icon.svg)", "README.md", pages) == "![i](icon.svg)"
    assert relink("[s](../SECURITY.md)", "docs/data.md", pages) == "[s](security.md)"
    assert relink("[d](../data.md)", "docs/results/cpu.md", pages) == "[d](../data.md)"
    assert relink("[`a`](../src/a.py)", "docs/data.md", pages) == "`a`"
    assert relink("[w](https://w.org/a)", "README.md", pages) == "[w](https://w.org/a)"
    code = "```text\n[d](docs/data.md)\n```\n"
    assert relink(code, "README.md", pages) == code


def cited(page):
    """Yield the paragraphs of a page that cite results, each with what is on the cited pages."""
    found = []
    for block in re.split(r"\n\s*\n", FENCE.sub("", page.read_text())):
        if block.startswith("|") and found:  # a table belongs to the words before it
            found[-1] += f"\n\n{block}"
        else:
            found += re.split(r"\n(?=- |\d+\. )", block)
    for text in found:
        pages = {(page.parent / each).resolve() for each in LINK.findall(text)}
        results = [each for each in pages if each.parent == DOCS / "results" and each != page]
        results = [each for each in results if each.suffix == ".md"]
        if results:
            words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
            yield words, " ".join(each.read_text() for each in results)


def decimals(text):
    """Return the numbers with a point, as they are written."""
    return [each for each in NUMBER.findall(text.replace(",", "")) if "." in each]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "results" / "index.md"],
    ids=lambda page: page.name,
)
def test_figures_are_on_the_pages_that_they_cite(page):
    """Up to rounding: 1.2 may be 1.21 there."""
    for words, results in cited(page):
        known = np.array([float(each) for each in NUMBER.findall(results.replace(",", ""))])
        for figure in decimals(words):
            rounding = 0.5000001 * 10.0 ** -len(figure.split(".")[1])
            assert np.abs(known - float(figure)).min() <= rounding, (figure, words)


def test_the_architecture_is_that_of_the_contracts():
    """Where this fails, run `python docs/pictures.py`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = (DOCS / "pictures" / "architecture.svg").read_text()
    shown = re.findall(r'font-weight="600">([^<]*)<', drawn)
    assert shown == [layer.replace(" | ", ", ") for layer in layers]


def test_the_readme_shows_what_its_commands_print():
    """`python -m benchmarks readme` writes what they print on MovieLens-1M."""
    written = (DOCS / "results" / "readme.md").read_text()
    shown = [found[3] for found in FENCE.finditer((ROOT / "README.md").read_text())]
    outputs = [code for code in shown if code.startswith("$ ")]
    assert outputs
    for output in outputs:
        assert output in written
    assert "![" in written
    assert "docs/results/readme.svg" in (ROOT / "README.md").read_text()
