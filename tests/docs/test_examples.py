"""The examples run as they are, on less data."""

import json
import sys
import types

import pytest

from safecf import IALS
from tests.docs.blocks import ROOT, shorter
from tests.long import some_long
from tests.spark.sessions import SESSIONS

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def code_of(example):
    """Return a script, or the code of a notebook's cells."""
    if example.suffix == ".py":
        return example.read_text()
    cells = json.loads(example.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.fixture
def own_session():
    """Let an example start and use a session of Spark, on loopback, and end it."""
    yield SESSIONS.get("classic")
    SESSIONS.stop()


@pytest.mark.parametrize(
    "example",
    some_long([*EXAMPLES, *NOTEBOOKS], lambda example: example.name == "spark.py"),
    ids=lambda example: example.name,
)
def test_an_example_runs(example, tmp_path, monkeypatch, capsys, request):
    if example.suffix == ".ipynb":
        matplotlib = pytest.importorskip("matplotlib", reason="the notebook draws charts")
        matplotlib.use("agg")
    if example.name == "spark.py":
        request.getfixturevalue("own_session")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [example.name])
    code = compile(shorter(code_of(example)), str(example), "exec")
    exec(code, {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_implicit_gets_a_new_model_for_every_split(tmp_path, monkeypatch, capsys):
    """Its `fit` goes on from the last factors, and crashes if they were of more users."""

    class AlternatingLeastSquares(IALS):
        """Stands for implicit's."""

        def fit(self, *arguments, **options):
            assert not hasattr(self, "once"), "a second fit"
            self.once = True
            return super().fit(*arguments, **options)

    module = types.SimpleNamespace(AlternatingLeastSquares=AlternatingLeastSquares)
    monkeypatch.setitem(sys.modules, "implicit", types.SimpleNamespace(als=module))
    monkeypatch.setitem(sys.modules, "implicit.als", module)
    monkeypatch.chdir(tmp_path)
    example = ROOT / "examples" / "replace_implicit.py"
    exec(compile(shorter(example.read_text()), str(example), "exec"), {"__name__": "__main__"})
    assert "implicit: user 0 gets" in capsys.readouterr().out


def test_the_page_shows_all_scripts():
    page = (ROOT / "docs" / "examples.md").read_text()
    for example in EXAMPLES:
        assert f'--8<-- "examples/{example.name}"' in page
        assert f"python examples/{example.name}" in page
    for notebook in NOTEBOOKS:
        assert notebook.name in page
