"""A command as it is typed, a file to run it on, and Ctrl-C at a chosen call."""

import json
import os
import signal
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import IALS, cli, datasets

SMALL = "ials:factors=4,iterations=3"
COLUMNS = ("--user", "visitor", "--item", "page")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Every test has a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a command and returns its exit code, stdout and stderr.

    It listens to Ctrl-C, which a job in the background ignores.
    """
    before = signal.getsignal(signal.SIGINT)

    def command(*arguments):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        monkeypatch.setattr(sys, "argv", ["safecf", *map(str, arguments)])
        with pytest.raises(SystemExit, match=r"^\d+$") as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    yield command
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def done(run):
    """Return a function that runs a command without a complaint, and returns its stdout."""

    def command(*arguments):
        code, out, err = run(*arguments)
        assert (code, err) == (0, ""), arguments
        return out

    return command


@pytest.fixture
def read(done):
    """Return a function that runs a command with --json, and returns what it has printed."""
    return lambda *arguments: json.loads(done(*arguments, "--json"))


def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def at_call():
    """Return a function that does something, such as Ctrl-C, at a call into a package."""

    def watch(package, action=interrupt, when=lambda frame: True):
        def look(frame, event, _):
            name = frame.f_globals.get("__name__") or ""
            if event == "call" and name.startswith(package) and when(frame):
                sys.setprofile(None)
                action()

        sys.setprofile(look)

    yield watch
    sys.setprofile(None)


@pytest.fixture
def clicks(tmp_path):
    """Return a file with the columns visitor, page, stars, time (in days) and team."""
    pairs = datasets.synthetic(300, 80, 6000, tastes=3).matrix.tocoo()
    day = pa.array((pairs.row * 7 + pairs.col * 13) % 200, pa.int32()).cast(pa.date32())
    columns = {
        "visitor": pairs.row,
        "page": [f"page {item}" for item in pairs.col],
        "stars": pairs.col % 5 + 1,
        "time": day,
        "team": [f"team {user % 2}" for user in pairs.row],
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "clicks.parquet")
    return tmp_path / "clicks.parquet"


@pytest.fixture
def log(clicks):
    """Return the clicks with their two columns of ids."""
    return datasets.read(clicks, user="visitor", item="page")


@pytest.fixture
def data(log):
    """Return the clicks."""
    return log.interactions()


@pytest.fixture
def model(data):
    """Return a model of the clicks, saved as m.safetensors in the current folder."""
    trained = IALS(4, iterations=3, random_state=0).fit(data, show_progress=False)
    trained.save("m.safetensors")
    return trained
