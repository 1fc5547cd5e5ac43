"""The code on pages runs, as a reader would paste it."""

import codeop
import os
import re
import shutil
import zipfile

import numpy as np
import pytest

from safecf.datasets import synthetic
from tests.data.official import ml_1m_text
from tests.docs.blocks import DOCS, INCLUDED, LANGUAGES, ROOT, blocks, run_page

# Pages that are written by programs have no code to run.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NEED_TORCH = {"choosing.md", "gpu.md"}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Return a folder with the tutorial's file, and MovieLens-1M with a few invented users."""
    folder = tmp_path_factory.mktemp("pages")
    before = os.getcwd()
    os.chdir(folder)
    try:
        exec(blocks(DOCS / "tutorial.md")[0].code, {})
    finally:
        os.chdir(before)
    pairs = synthetic(700, 200, 15_000, tastes=3).matrix.tocoo()
    rows = [(user + 1, item + 1, 5, 10**9) for user, item in zip(pairs.row, pairs.col, strict=True)]
    with zipfile.ZipFile(folder / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", ml_1m_text(rows))
    return folder


@pytest.fixture
def reader(files, tmp_path, monkeypatch):
    """A reader who has done the tutorial's first step, in a folder of their own."""
    for file in files.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("reader")
def test_the_code_of_a_page_runs(page, monkeypatch):
    if page.name in NEED_TORCH:
        pytest.importorskip("torch", reason="the page trains with PyTorch, which is not installed")
    names = run_page(page, monkeypatch)
    if page.name == "gpu.md":
        assert np.shape(names["ids"]) == np.shape(names["best"]) == (2000, 20)
        np.testing.assert_array_equal(names["served"].item_factors, names["model"].item_factors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_marked_as_such(page):
    """Nothing that could be pasted escapes: every block has a language, shell is never indented."""
    found = blocks(page)
    assert {block.language for block in found} <= LANGUAGES
    rest = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(
        r"^    (?:\$ |safecf |pip |make |python |from |import ).*$", rest, re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_can_be_pasted_into_a_prompt(page):
    """Python's prompt, as opposed to a file, wants an empty line after an indented block."""
    for block in blocks(page):
        if block.language == "python" and not block.code.startswith(INCLUDED):
            statement = ""
            for line in [*block.code.splitlines(), ""]:
                statement += f"{line}\n"
                if codeop.compile_command(statement, symbol="single") is not None:
                    statement = ""
            assert not statement.strip()
