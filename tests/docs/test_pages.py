"""The code on the pages runs from top to bottom, and prints what they show."""

import os
import re
import shutil
import sys
import zipfile
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from safecf.datasets import synthetic
from tests.docs.blocks import BLOCK, DOCS, ROOT, Reader, is_alike
from tests.spark.sessions import SESSIONS

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NEED_TORCH, NEED_SPARK = {"choosing.md", "gpu.md"}, {"from-spark.md"}
TAKE_LONG = {"tuning.md", *NEED_SPARK}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with the tutorial's file, and invented users in place of others' data."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(BLOCK.search((DOCS / "tutorial.md").read_text())[3], {})
    pairs = synthetic(700, 200, 15_000, tastes=3).matrix.tocoo()
    rows = [f"{u + 1}::{i + 1}::5::{10**9}\n" for u, i in zip(pairs.row, pairs.col, strict=True)]
    with zipfile.ZipFile(folder / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", "".join(rows))
    table = pa.table({"user": pairs.row, "item": pairs.col})
    pq.write_table(table, folder / "book-crossing.parquet")
    return folder


def read_from_here(spark):
    """Let a session, which may have begun in another folder, find relative paths in this one."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    files.setWorkingDirectory(hadoop.Path(os.getcwd()))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in TAKE_LONG))
        for page in PAGES
        if BLOCK.search(page.read_text())
    ],
)
def test_the_code_of_a_page_runs(page, files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", sys.argv)
    if page.name in NEED_TORCH:
        pytest.importorskip("torch", reason="the page trains with PyTorch, which is not installed")
    if page.name in NEED_SPARK:
        read_from_here(SESSIONS.get("classic"))  # on loopback; the page gets the same one
    text = page.read_text()
    with ExitStack() as stack:
        reader = Reader(page, stack)
        monkeypatch.setattr("safecf.serving.server.run", reader.serve)
        for block in BLOCK.finditer(text):
            code = re.sub(f"^{block[1]}", "", block[3], flags=re.MULTILINE)
            reader.run(block[2], code, text.count("\n", 0, block.start(3)))


@pytest.mark.parametrize("printed", ["a 1.02\nb", "a 1\nc", "a 1\nb\nc", "a\nb", "a -1\nb", "1\nb"])
def test_another_output_is_noticed(printed):
    assert is_alike("...\na 1\n...\n", f"c a 1 {printed}", 0.01)
    assert not is_alike("a 1\nb", printed, 0.01)
