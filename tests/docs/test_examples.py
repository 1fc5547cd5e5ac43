"""The examples run as they are, on less data."""

import json
import sys
import types

import pytest

from safecf import IALS
from tests.docs.blocks import ROOT, shorter
from tests.spark.sessions import SESSIONS

EXAMPLES = sorted(
    path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb")
)


class AlternatingLeastSquares(IALS):
    """Stands for implicit's, which goes on from the last factors in a second `fit`."""

    def fit(self, *arguments, **options):
        assert not hasattr(self, "once"), "a second fit of one model"
        self.once = True
        return super().fit(*arguments, **options)


@pytest.fixture
def own_session():
    """Let an example start and use a session of Spark, on loopback, and end it."""
    yield SESSIONS.get("classic")
    SESSIONS.stop()


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem == "spark")) for path in EXAMPLES],
    ids=lambda path: path.name,
)
def test_an_example_runs(example, tmp_path, monkeypatch, capsys, request):
    code = example.read_text()
    if example.suffix == ".ipynb":
        matplotlib = pytest.importorskip("matplotlib", reason="the notebook draws charts")
        matplotlib.use("agg")
        cells = [cell for cell in json.loads(code)["cells"] if cell["cell_type"] == "code"]
        code = "\n".join("".join(cell["source"]) for cell in cells)
    if example.stem == "spark":
        request.getfixturevalue("own_session")
    als = types.SimpleNamespace(AlternatingLeastSquares=AlternatingLeastSquares)
    monkeypatch.setitem(sys.modules, "implicit", types.SimpleNamespace(als=als))
    monkeypatch.setitem(sys.modules, "implicit.als", als)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [example.name])
    exec(compile(shorter(code), str(example), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
