"""The parts of the site that mkdocs does not check: links of the README, pictures, hooks."""

import re
import runpy
import tomllib

import pytest

from tests.docs.blocks import DOCS, FENCE, ROOT

HOOKS = runpy.run_path(str(DOCS / "site_hooks.py"))
TEXTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
NUMBER = re.compile(r"(?<![\w.^])[+-]?(?<![\w.^])\d*\.?\d+(?![\w.]*\d)")
INTERVAL = r"\[[^\[\]]*\]"
ENTRY = re.compile(rf"({NUMBER.pattern})((?:[ %|*]*{INTERVAL})*)")
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
    assert (
        relink("[`a`](../examples/a.py)", "docs/b.md", {"examples/a.py"}) == "[`a`](examples/a.py)"
    )
    assert relink("[w](https://w.org/a)", "README.md", pages) == "[w](https://w.org/a)"
    code = "```text\n[d](docs/data.md)\n```\n"
    assert relink(code, "README.md", pages) == code


def cited(page):
    """Yield the paragraphs of a page that cite results, each with the lines of the cited pages."""
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
            words = re.sub(r"`([\w.]*)[^`]*`|\]\([^)]*\)", r"\1", text)
            yield words, "\n".join(each.read_text() for each in results).lower().splitlines()


def figures(text):
    """Return the numbers of a text as they are written, with the signs that they have."""
    return NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))


def entries(text):
    """Return the numbers of a text, each with the intervals that follow it.

    >>> entries("| +1.0 % | [+0.9, +1.2] | [+0.8, +1.3] | 3 |")
    [('+1.0', [['+0.9', '+1.2'], ['+0.8', '+1.3']]), ('3', [])]
    """
    found = ENTRY.findall(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    return [
        (value, [figures(each) for each in re.findall(INTERVAL, ends)]) for value, ends in found
    ]


def claims(text):
    """Return what has to stand in one line of a cited page: a name, and entries in this order.

    A cell of a table is a claim, with the first word of its row as the name; elsewhere a number
    with its interval is one, without a name.

    >>> claims("It gains 4.3 % [2.3, 6.3].\\n\\n| | A |\\n|---|---|\\n| demo, long | 1.2, 3.4 |")
    [('', [('4.3', [['2.3', '6.3']])]), ('demo', [('1.2', []), ('3.4', [])])]
    """
    prose, _, table = text.partition("\n\n|")
    found = [("", [entry]) for entry in entries(prose)]
    for row in table.splitlines()[2:]:
        _, label, *cells = row.split("|")
        name = re.search(r"[\w-]*", label.strip())[0].lower()
        found += [(name, entries(cell)) for cell in cells]
    return [(name, claim) for name, claim in found if any("." in value for value, _ in claim)]


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


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "results" / "index.md"],
    ids=lambda page: page.name,
)
def test_figures_are_on_the_pages_that_they_cite(page):
    for text, lines in cited(page):
        for name, claim in claims(text):
            assert any(stands(name, claim, line) for line in lines), (name, claim, text)


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


OURS, PEER = "safecf SAFER2, spectral CG (0.001)", "implicit ALS, CG"


def epoch(page, shape, label):
    """Return the median time of an epoch on a page of speed."""
    section = (DOCS / "results" / page).read_text().split(f"## One epoch, {shape} shape\n")[1]
    return re.search(rf"^\| {re.escape(label)}[^|]*\| ([\d.]+) \|", section, re.MULTILINE)[1]


def test_the_epochs_of_the_readme_are_the_medians_of_the_pages():
    rows = {
        "SAFER2, two cores": ("cpu.md", OURS, "s"),
        "implicit's ALS (CG), the same two cores": ("cpu.md", PEER, "s"),
        "SAFER2, one H200": ("gpu.md", OURS, "ms"),
    }
    readme = (ROOT / "README.md").read_text()
    for name, (page, label, unit) in rows.items():
        times = [f"{epoch(page, shape, label)} {unit}" for shape in ("ML-20M", "MSD")]
        assert f"| {name} | {' | '.join(times)} |" in readme


@pytest.mark.parametrize(
    ("page", "shapes", "sources"),
    [
        ("results/index.md", ("ML-20M", "MSD"), {"cpu.md": (OURS, PEER), "gpu.md": (OURS,)}),
        ("gpu.md", ("ML-20M", "MSD"), {"gpu.md": (OURS,)}),
        ("speed.md", ("ML-20M",), {"cpu.md": (OURS, PEER), "gpu.md": (OURS,)}),
    ],
)
def test_other_pages_tell_the_same_epochs(page, shapes, sources):
    told = figures((DOCS / page).read_text())
    for source, labels in sources.items():
        for label in labels:
            assert {epoch(source, shape, label) for shape in shapes} <= {*told}


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


def test_the_readme_shows_what_its_commands_print():
    """`python -m benchmarks readme` writes what they print on MovieLens-1M."""
    written = (DOCS / "results" / "readme.md").read_text()
    shown = [found[3] for found in FENCE.finditer((ROOT / "README.md").read_text())]
    outputs = [code for code in shown if code.startswith("$ ")]
    assert outputs
    for output in outputs:
        command, shown = output.split("\n...\n")  # the table of the scores is on that page alone
        assert f"{command}\n" in written
        assert shown in written
    assert "![" in written
    readme = (ROOT / "README.md").read_text()
    assert "docs/results/readme.svg" in readme
    lift = re.search(r"\(docs/evaluation.md#several-splits\) them\s+by (.*?\])", readme)[1]
    assert f"SAFER2 lifts the worst-off 30 % by {lift}" in (DOCS / "evaluation.md").read_text()


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
