"""Nothing opens a socket but the download of a data set."""

import subprocess
import sys

import pytest

# Ends the process with 3 at the first socket, or look-up of a name.
GUARD = """
import os, sys, traceback
def guard(event, arguments):
    if event.startswith("socket."):
        traceback.print_stack()
        os._exit(3)
sys.addaudithook(guard)
"""
IMPORTS = """
import importlib, pkgutil, safecf
for module in pkgutil.walk_packages(safecf.__path__, "safecf."):
    if module.name != "safecf.models.vae.trainer":  # imports torch
        importlib.import_module(module.name)
"""
FITS = """
import pathlib, tempfile, warnings
import safecf
from safecf.models import MODELS
users, items = safecf.datasets.synthetic(300, 60, 4000).matrix.nonzero()
split = safecf.split.strong_generalization(users, items, heldout=50)
found = []
for name, kind in MODELS.items():
    if name != "MultVAE":
        quick = {} if name == "EASE" else {"factors": 4, "iterations": 2, "random_state": 0}
        model = kind(**quick).fit(split.train, show_progress=False)
        found.append(safecf.evaluate(model, split))
with tempfile.TemporaryDirectory() as folder:
    model.save(pathlib.Path(folder, "model"))
    safecf.load(pathlib.Path(folder, "model"))
    safecf.report(found, pathlib.Path(folder, "report.html"))
"""
COMMANDS = """
import pathlib, tempfile
from safecf.cli import main
def run(*words):
    sys.argv = ["safecf", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
with tempfile.TemporaryDirectory() as folder:
    data = pathlib.Path(folder, "data.csv")
    rows = [f"{user},{(user * item) % 37}" for user in range(1, 80) for item in range(1, 12)]
    data.write_text("user,item\\n" + "\\n".join(rows))
    run("--help")
    run("evaluate", str(data), "-m", "safer2:factors=4,iterations=2", "--heldout", "20", "--quiet",
        "--report", f"{folder}/report.html", "--out", f"{folder}/out.json")
"""


def ended(program):
    command = [sys.executable, "-W", "ignore", "-c", GUARD + program]
    return subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("program", [IMPORTS, FITS, COMMANDS], ids=["import", "fit", "commands"])
def test_no_socket_is_opened(program):
    done = ended(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "program",
    ["import socket; socket.socket()", "import socket; socket.getaddrinfo('localhost', 80)"],
)
def test_a_socket_would_be_seen(program):
    assert ended(program).returncode == 3


def test_a_download_is_the_exception(tmp_path):
    program = (
        "from pathlib import Path; from safecf.data.datasets import download\n"
        f"download.fetch('http://localhost:9/x', Path({str(tmp_path / 'x')!r}))"
    )
    assert ended(program).returncode == 3
