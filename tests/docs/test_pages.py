"""The code on pages runs, as a reader would paste it."""

import codeop
import doctest
import os
import re
import shutil
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from safecf.datasets import synthetic
from tests.data.official import ml_1m_text
from tests.docs import blocks as helpers
from tests.docs.blocks import DOCS, INCLUDED, LANGUAGES, ROOT, blocks, is_alike, run_page
from tests.long import some_long
from tests.spark.sessions import SESSIONS

# Pages that are written by programs have no code to run.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NEED_TORCH = {"choosing.md", "gpu.md"}
NEED_SPARK = {"from-spark.md"}
TAKE_LONG = {"tuning.md", *NEED_SPARK}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Return a folder with the tutorial's file, and invented users in place of others' data."""
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
    table = pa.table({"user": pairs.row, "item": pairs.col})
    pq.write_table(table, folder / "book-crossing.parquet")
    return folder


@pytest.fixture
def reader(files, tmp_path, monkeypatch):
    """A reader who has done the tutorial's first step, in a folder of their own."""
    for file in files.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path))
    return tmp_path


def read_from_here(spark):
    """Let a session, which may have begun in another folder, find relative paths in this one."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    files.setWorkingDirectory(hadoop.Path(os.getcwd()))


@pytest.mark.parametrize(
    "page", some_long(PAGES, lambda page: page.name in TAKE_LONG), ids=lambda page: page.name
)
@pytest.mark.usefixtures("reader")
def test_the_code_of_a_page_runs(page, monkeypatch):
    if page.name in NEED_TORCH:
        pytest.importorskip("torch", reason="the page trains with PyTorch, which is not installed")
    if page.name in NEED_SPARK:
        read_from_here(SESSIONS.get("classic"))  # on loopback; the page gets the same one
    names = run_page(page, monkeypatch)
    if page.name == "gpu.md":
        assert np.shape(names["ids"]) == np.shape(names["best"]) == (2000, 20)
        np.testing.assert_array_equal(names["served"].item_factors, names["model"].item_factors)


OUTPUT = """users of a worst-off group  3,000
lift                        0.5 % [-0.9, 2.1]
written: report.html
"""


@pytest.mark.parametrize(
    "shown",
    [
        OUTPUT,
        OUTPUT.replace("3,000", "3,001").replace("2.1", "2.11"),
        "...\nlift 0.5 % [-0.9, 2.1]\n...\n",
        "users of a worst-off group 3,000\n...\nwritten: report.html",
        "...\nlift 0.5 % [-0.9, 2.1]\nwritten: report.html",
        "...",
    ],
)
def test_what_is_left_out_is_marked(shown):
    assert is_alike(shown, OUTPUT)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("[-0.9", "[0.9"),
        ("0.5 %", "-0.5 %"),
        ("0.5 %", "0.5"),
        ("2.1", "2.2"),
        ("report", "reports"),
        ("users of a worst-off group  3,000\n", ""),
        ("lift                        0.5 % [-0.9, 2.1]\n", ""),
        ("written: report.html\n", ""),
        ("lift", "...\nlifted"),
        ("written", "written\n...\nwritten"),
    ],
)
def test_another_output_is_noticed(left, right):
    assert left in OUTPUT
    assert not is_alike(OUTPUT.replace(left, right), OUTPUT)


def test_the_helpers_do_what_their_examples_say():
    found = doctest.testmod(helpers)
    assert (found.failed, found.attempted > 1) == (0, True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_outputs_follow_what_prints_them(page):
    """So that they are compared."""
    assert all(block.after_python for block in blocks(page) if block.language == "text")


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
