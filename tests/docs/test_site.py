"""The parts of the site that mkdocs does not check: links of the README, pictures, hooks."""

import re
import runpy
import tomllib

import pytest

from tests.docs.blocks import DOCS, FENCE, ROOT

HOOKS = runpy.run_path(str(DOCS / "site_hooks.py"))
TEXTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
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
