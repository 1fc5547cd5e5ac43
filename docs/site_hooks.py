"""What the site needs beyond mkdocs: pages from the root, examples, formulas as MathML."""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Pages of the site that lie in the root, where their readers look for them.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
FENCE = re.compile(r"^(```.*?^```|    .*?$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
BAR = re.compile(r'<mo(?: stretchy="false")?>(&#x0007C;|&#x02016;)</mo>')  # of lengths and norms
FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def relink(text: str, page: str, pages: set[str]) -> str:
    """Make links between files of the checkout links between pages of the site.

    `page` is the file's path from the root. A link to a file that is no page becomes its text.

    >>> relink("[data](docs/data.md), [licence](LICENSE)", "README.md", {"data.md"})
    '[data](data.md), licence'
    """

    def moved(link: re.Match[str]) -> str:
        mark, words, target, anchor = link.groups(default="")
        if re.match(r"[a-z]+:", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        found = OUTSIDE.get(path, path.removeprefix("docs/"))
        if found not in pages:
            return words
        home = posixpath.dirname(OUTSIDE.get(page, page.removeprefix("docs/")))
        return f"{mark}[{words}]({posixpath.relpath(found, home or '.')}{anchor})"

    parts = FENCE.split(text)  # code is at the odd places
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    return "".join(parts)


def mathml(page: str) -> str:
    r"""Replace TeX, as arithmatex marks it, by MathML, which browsers draw without a script.

    >>> mathml('<span class="arithmatex">\\(x\\)</span>')
    '<math ...><mrow><mi>x</mi></mrow></math>'
    """
    from latex2mathml.converter import convert  # noqa: PLC0415

    def drawn(found: re.Match[str]) -> str:
        block = found[1] == "div"
        tex = html.unescape(found[2]).strip()[2:-2]
        math = convert(tex, display="block" if block else "inline")
        math = BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', math)
        return f'<div class="formula">{math}</div>' if block else math

    return FORMULA.sub(drawn, page)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from the root, and the examples as files to save."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    for source, target in OUTSIDE.items():
        wide = "---\nhide: [navigation]\n---\n" if target == "index.md" else ""
        text = (ROOT / source).read_text()
        files.append(File.generated(config, target, content=wide + text))
    for example in sorted((ROOT / "examples").iterdir()):
        if example.suffix in (".py", ".ipynb"):
            path = f"examples/{example.name}"
            files.append(File.generated(config, path, abs_src_path=str(example)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of a page."""
    sources = {target: source for source, target in OUTSIDE.items()}
    uri = page.file.src_uri
    return relink(markdown, sources.get(uri, f"docs/{uri}"), set(files.src_uris))


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas of a page."""
    return mathml(html)
