"""Ctrl-C ends a read, also in the moment in which pandas is imported for pyarrow."""

import subprocess
import sys

PROGRAM = """
import sys
from safecf import Interactions, SAFER2, datasets, split
import numpy, pyarrow, pyarrow.parquet, scipy.sparse

class Interrupt:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise KeyboardInterrupt

known = Interactions.from_csr(scipy.sparse.csr_matrix(numpy.eye(9) + numpy.eye(9, k=1)))
model = SAFER2(factors=2, iterations=1).fit(known, show_progress=False)
table = pyarrow.table({"user": [1, 2], "item": ["a", "b"]})
pyarrow.parquet.write_table(table, "log.parquet")
sys.modules.pop("pandas", None)
sys.meta_path.insert(0, Interrupt())
reads = {
    "csv": lambda: Interactions.from_csv("log.csv"),
    "log": lambda: datasets.read("log.csv", timestamp="time"),
    "parquet": lambda: Interactions.from_parquet("log.parquet"),
    "frame": lambda: Interactions.from_frame({"user": numpy.arange(3), "item": ["a", "b", "c"]}),
    "times": lambda: split.temporal(*[numpy.arange(6)] * 3, share=0.5),
    "recommendations": lambda: model.recommend_frame(user_items=known),
}
for name, read in reads.items():
    try:
        read()
    except KeyboardInterrupt:
        print(name)
"""


def test_ctrl_c_while_pandas_is_imported(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,time\n1,a,2024-01-01\n2,b,2024-01-02\n")
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    names = ["csv", "log", "parquet", "frame", "times", "recommendations"]
    assert ended.stdout.split() == names, ended.stderr
