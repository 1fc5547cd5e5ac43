"""A session whose cells the tests of a module share, and the command as a person types it."""

import sys

import pytest

import reproduction
from reproduction import __main__ as command
from reproduction import worker
from reproduction.session import Session
from safecf.cli.running import run as run_app


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Run cells with one thread: on tiny data more are slower."""
    monkeypatch.setattr("reproduction.runner.cores", lambda: 1)
    monkeypatch.setitem(worker._state, "threads", 1)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that gives the exit code, and what went to stdout and to stderr."""

    def typed(*arguments):
        monkeypatch.setattr(sys, "argv", ["reproduction", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            run_app(command.app)
        return end.value.code or 0, *capsys.readouterr()

    return typed


@pytest.fixture(scope="module")
def shared_cells(tmp_path_factory):
    """Return a folder of finished cells that all tests of a module use."""
    return tmp_path_factory.mktemp("cells")


@pytest.fixture
def render(tmp_path, shared_cells):
    """Return a function that runs an experiment, and returns the path of its page.

    Cells run in this process.
    """
    pytest.importorskip("matplotlib", reason="experiments draw figures")

    def rendered(name, options, **more):
        experiment, lines = reproduction.load(name), []
        session = Session(None, tmp_path / "out", shared_cells, 0, show_progress=False, **more)
        assert session.run(experiment, options, lines.append) == 0, lines
        return tmp_path / "out" / f"{experiment.page_name(options)}.md"

    return rendered
