"""A command as it is typed, and a file to run it on."""

import signal
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import IALS, cli, datasets
from safecf.data.datasets.synthetic import synthetic


@pytest.fixture(autouse=True)
def interrupts():
    """Listen to Ctrl-C, which a job in the background ignores; restore its handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a command and returns its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["safecf", *map(str, arguments)])
        with pytest.raises(SystemExit, match=r"^\d+$") as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return command


@pytest.fixture
def clicks(tmp_path):
    """Return a file with the columns visitor, page, stars, time (in days) and team."""
    pairs = synthetic(300, 80, 6000, tastes=3).matrix.tocoo()
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
def data(clicks):
    """Return the clicks."""
    return datasets.read(clicks, user="visitor", item="page").interactions()


@pytest.fixture
def model(data, tmp_path, monkeypatch):
    """Return a model of the clicks, saved as m.safetensors in the current folder."""
    monkeypatch.chdir(tmp_path)
    trained = IALS(4, iterations=3, random_state=0).fit(data, show_progress=False)
    trained.save("m.safetensors")
    return trained
