"""Ctrl-C ends a read, also in the moment in which pandas is imported for pyarrow."""

import subprocess
import sys

import pytest

INTERRUPT_THE_IMPORT = """
import sys
from safecf import Interactions, SAFER2, datasets, split
import numpy, scipy.sparse

class Interrupt:
    def find_spec(self, name, *_):
        if name == "pandas":
            print("pandas is imported", flush=True)
            raise KeyboardInterrupt

known = Interactions.from_csr(scipy.sparse.csr_matrix(numpy.eye(9) + numpy.eye(9, k=1)))
model = SAFER2(factors=2, iterations=1).fit(known, show_progress=False)
assert "pandas" not in sys.modules
sys.meta_path.insert(0, Interrupt())
"""
READS = {
    "csv": 'Interactions.from_csv("log.csv")',
    "log": 'datasets.read("log.csv", timestamp="time")',
    "parquet": 'Interactions.from_parquet("log.parquet")',
    "frame": 'Interactions.from_frame({"user": numpy.arange(3), "item": ["a", "b", "c"]})',
    "times": "split.temporal(numpy.arange(6), numpy.arange(6), numpy.arange(6), share=0.5)",
    "recommendations": "model.recommend_frame(user_items=known)",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,time\n1,a,2024-01-01\n2,b,2024-01-02\n")
    write = "import pyarrow.parquet as p; import pyarrow as a; "
    write += "p.write_table(a.table({'user': [1, 2], 'item': ['a', 'b']}), 'log.parquet')"
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("read", READS)
def test_ctrl_c_while_pandas_is_imported(folder, read):
    program = f"{INTERRUPT_THE_IMPORT}\n{READS[read]}\nprint('went on')\n"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "pandas is imported" in ended.stdout, ended.stderr
    assert "went on" not in ended.stdout
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
