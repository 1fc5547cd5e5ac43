"""What `make docs` does not check: links and paths as they are in a checkout, and pictures."""

import re
import runpy

import pytest

from tests.docs.blocks import BLOCK, DOCS, ROOT

LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]+)(?:#[^)\s]*)?\)")
PATH = re.compile(r"`((?:src|cpp|tests|benchmarks|reproduction|soak|docs|examples)/[\w./-]+)`")


def test_links_and_paths_lead_to_files():
    """`make docs` checks those of the site, with anchors."""
    missing = []
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        text = BLOCK.sub("", page.read_text())
        found = [(page.parent, link) for link in LINK.findall(text)]
        found += [(ROOT, path) for path in PATH.findall(text)]
        missing += [(page.name, path) for at, path in found if not (at / path).exists()]
    assert missing == []


def test_pictures_are_drawn_from_what_they_show():
    """Where this fails, run `python -m docs.pictures`."""
    pytest.importorskip("matplotlib", reason="it draws the pictures")
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    drawn = (DOCS / "pictures" / "architecture.svg").read_text()
    assert pictures["architecture"]() == drawn
    left, right = pictures["where"]().axes
    assert left.get_legend_handles_labels()[1] == right.get_legend_handles_labels()[1]
    for name in left.get_legend_handles_labels()[1]:
        assert f">{name}</text>" in (DOCS / "pictures" / "where.svg").read_text()
