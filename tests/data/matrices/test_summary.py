"""`Summary`, and how `Interactions` are shown."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from safecf import Interactions

TABLE = """\
users                      3
items                      4
interactions               6
density                 50 %

                      min     25 %   median     75 %     90 %      max
items of a user         0        1        2        3      3.6        4
users of an item        1        1      1.5        2        2        2"""


@pytest.fixture
def interactions():
    matrix = sp.csr_matrix(np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]], dtype=np.float32))
    return Interactions.from_csr(matrix, ["a", "b", "c"])


def test_summary(interactions):
    summary = interactions.summary()
    assert (summary.users, summary.items, summary.interactions) == (3, 4, 6)
    assert summary.density == 0.5
    assert summary.per_user["median"] == 2
    assert summary.per_item["max"] == 2
    assert str(summary) == TABLE
    assert repr(interactions) == "Interactions(3 users, 4 items, 6 interactions)"


def test_html_for_notebooks(interactions):
    page = interactions._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<table>") == page.count("</table>") == 2
    for number in ("50 %", "3.6", "median"):
        assert f">{number}<" in page


def test_large_numbers_and_weights():
    count = 12_345
    table = pa.table({"user": np.arange(count), "item": np.zeros(count, int), "w": [2.0] * count})
    lines = str(Interactions.from_frame(table, weight="w").summary()).splitlines()
    assert lines[0] == "users                 12,345"
    assert lines[2].endswith("12,345 (weighted)")
    assert lines[-1].endswith("   12,345")
