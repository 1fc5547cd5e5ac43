"""The code on pages runs."""

import re
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def test_the_page_on_the_gpu(tmp_path, monkeypatch):
    """On the CPU, where there is no GPU."""
    torch = pytest.importorskip("torch", reason="the page is about PyTorch, which is not installed")
    monkeypatch.chdir(tmp_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = {}
    for code in blocks("gpu.md"):
        exec(code.replace('device="cuda"', f'backend="torch", device="{device}"'), names)
    assert np.shape(names["ids"]) == np.shape(names["best"]) == (2000, 20)
    np.testing.assert_array_equal(names["served"].item_factors, names["model"].item_factors)
