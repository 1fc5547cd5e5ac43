"""What mkdocs does not check: links of the README, pictures, hooks, recorded outputs."""

import re
import runpy
import tomllib

import pytest

from tests.docs.blocks import (
    DOCS,
    FENCE,
    LINK,
    ROOT,
    blocks,
    commands,
    is_recorded,
    is_whole,
    parts,
)

HOOKS = runpy.run_path(str(DOCS / "site_hooks.py"))
WRITTEN = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
TEXTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]


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
    assert (
        relink("[`a`](../examples/a.py)", "docs/b.md", {"examples/a.py"}) == "[`a`](examples/a.py)"
    )
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


def test_no_text_of_the_architecture_runs_into_another():
    """With letters as wide as those of wide fonts: 8 units, 9 in bold, of the picture's 720."""
    drawn = (DOCS / "pictures" / "architecture.svg").read_text()
    ends = {}
    for place, attributes, text in re.findall(r"<text ([^>]*y=\"\d+\")([^>]*)>([^<]*)<", drawn):
        x, y = (int(each) for each in re.findall(r"\d+", place))
        width = len(text) * (9 if "600" in attributes else 8)
        right = x if "end" in attributes else x + width
        assert right <= 698
        assert right - width >= ends.get(y, 22)
        ends[y] = right
    assert ends


def test_the_picture_of_where_shows_the_data_sets_of_its_table():
    """Where this fails, run `python docs/pictures.py`."""
    rows = re.findall(r"^\| ([\w-]+) \|", (DOCS / "where.md").read_text(), re.MULTILINE)
    drawn = (DOCS / "pictures" / "where.svg").read_text()
    assert len(rows) == 6
    for name in rows:
        assert f">{name}</text>" in drawn


def recorded(page):
    """Return the commands of a page whose outputs are recorded, each with what is shown of it."""
    consoles = [block for block in blocks(page, str) if block.language == "console"]
    found = [each for block in consoles for each in commands(block) if is_recorded(each[0])]
    return [(" ".join(command.split()), shown) for command, shown in found]


@pytest.mark.parametrize(
    ("page", "command", "shown"),
    [(page.name, *each) for page in WRITTEN for each in recorded(page)],
)
def test_pages_show_what_was_recorded(page, command, shown):
    """`python -m benchmarks readme` writes it; what a page leaves out, it marks by `...`."""
    printed = dict(recorded(DOCS / "results" / "readme.md"))[command]
    assert is_whole(parts(shown, str.splitlines), printed.splitlines(), list.__eq__), printed


def test_the_readme_has_the_picture_of_what_was_recorded():
    assert "](readme.svg)" in (DOCS / "results" / "readme.md").read_text()
    assert "](docs/results/readme.svg)" in (ROOT / "README.md").read_text()


def test_the_changelog_has_dates_and_tells_everything_once():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    for version in versions[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version)
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        sections = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert len(sections) == len({*sections})
        # A heading stands between blank lines; an entry begins like no other of its release.
        assert not re.findall(r"^(?!\n).*\n(?:\*\w.*\*|#.*)\n", release, re.MULTILINE)
        begins = [each[:30] for each in re.findall(r"^- (.*)$", release, re.MULTILINE)]
        assert len(begins) == len({*begins})
