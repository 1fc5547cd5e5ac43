"""The code version: which changes of the code make new cells."""

import importlib

import pytest

from reproduction import version
from reproduction.tasks import quality
from reproduction.version import code_version, digest, meaning
from tests.reproduction.tasks import double, other

current = code_version.__wrapped__  # without the cache


def test_it_is_that_of_the_code_that_was_loaded(monkeypatch, tmp_path):
    file = tmp_path / "fleeting.py"
    file.write_text("def run(settings):\n    return {'value': 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    run = importlib.import_module("fleeting").run
    before = code_version(run)
    file.write_text("def run(settings):\n    return {'value': 2}\n")
    assert code_version(run) == before
    assert current(run) != before


def test_it_depends_on_the_module_of_the_function():
    assert current(double) == current(other)  # of the same module
    assert current(double) != current(code_version)


@pytest.fixture
def library(monkeypatch, tmp_path):
    """Return the folder of a small library that takes the place of the real one."""
    for name, source in {
        "als/loop.py": "from safecf.als.loss import loss\nx = loss(1)",
        "als/loss.py": "def loss(x):\n    return x",
        "als/__init__.py": '"""The paper."""\nfrom safecf.als.loop import x',
        "cli/__init__.py": "y = 1",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    monkeypatch.setattr(version, "LIBRARY", tmp_path)
    monkeypatch.setattr(version, "_library", version._library.__wrapped__)
    return tmp_path


def test_moving_a_file_does_not_change_it(library):
    before = current(double)
    (library / "models").mkdir()
    (library / "als" / "loss.py").rename(library / "models" / "losses.py")
    (library / "als" / "loop.py").write_text("from safecf.models.losses import loss\nx = loss(1)")
    (library / "models" / "__init__.py").write_text('"""Models."""\n')
    assert current(double) == before


@pytest.mark.parametrize(
    ("file", "source", "counts"),
    [
        ("als/loss.py", "def loss(x):\n    return x  # the same", False),
        ("als/loss.py", "def loss(x):\n    return 2 * x", True),
        ("als/loop.py", "from safecf.als.loss import other as loss\nx = loss(1)", True),
        ("als/loop.py", "from numpy import loss\nx = loss(1)", True),
        ("new/part.py", "z = 1", True),
        ("cli/__init__.py", "y = 2", False),
        ("reporting/page.py", "z = 1", False),
    ],
)
def test_what_counts(library, file, source, counts):
    before = current(double)
    (library / file).parent.mkdir(exist_ok=True)
    (library / file).write_text(source)
    assert (current(double) != before) == counts


def test_code_that_changes_numbers_counts():
    counted = {file.relative_to(version.LIBRARY).parts[0] for file in version.counted_files()}
    assert {"als", "backends", "data", "evaluation", "measures", "models"} <= counted
    assert not counted & {"cli", "reporting", "tuning"}
    package = importlib.import_module("reproduction").__path__[0]
    assert quality.__file__ in {f"{package}/{name}" for name in version.SHARED}
    assert "data.py" in version.SHARED


def test_the_native_part_counts(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode())
    assert digest([], tmp_path / "one") != digest([], tmp_path / "two")


def test_docstrings_and_comments_have_no_meaning():
    plain = meaning("def f(x):\n    return x + 1")
    assert meaning('"""A."""\ndef f(x):\n    """B."""\n    # c\n    return x+1') == plain
    assert meaning("def f(x):\n    return x + 2") != plain
