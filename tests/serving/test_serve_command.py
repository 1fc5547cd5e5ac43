"""`safecf serve`: bad input is one clear line, and logs are one line per request."""

import json
import re
import signal
import socket

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import safecf.serving
from safecf.serving.catalogue import Catalogue, read_facts
from safecf.serving.settings import Settings
from tests.cli.conftest import run
from tests.serving.conftest import fit

__all__ = ["run"]  # a fixture


@pytest.fixture
def bad(folder, tmp_path):
    """Return files that cannot be served, by name."""
    other = fit().save(tmp_path / "other.safetensors")
    assert other is None
    (tmp_path / "empty.safetensors").touch()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "text.parquet").write_text("no Parquet")
    pa.parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "columns.parquet")
    pa.parquet.write_table(pa.table({"item": [1], "title": ["a"]}), tmp_path / "others.parquet")
    return tmp_path


CASES = {
    "no such file": (["nothing.safetensors"], "nothing.safetensors"),
    "an empty file": (["{bad}/empty.safetensors"], "empty.safetensors: it is damaged"),
    "no such baseline": (["{good}/model.safetensors", "--baseline", "x"], "x.safetensors"),
    "titles that are none": (
        ["{good}/model.safetensors", "--items", "{bad}/text.parquet"],
        "text.parquet: .*give a Parquet or CSV file of items",
    ),
    "titles without columns": (
        ["{good}/model.safetensors", "--items", "{bad}/columns.parquet"],
        r"its columns are a, b; there have to be item \(or id\) and title",
    ),
    "titles of other items": (
        ["{good}/model.safetensors", "--items", "{bad}/others.parquet"],
        "none of its 1 items is known to the model, such as .*give the ids of the training data",
    ),
    "no such titles": (
        ["{good}/model.safetensors", "--items", "{bad}/none.parquet"],
        "none.parquet",
    ),
    "an evaluation that is none": (
        ["{good}/model.safetensors", "--evaluation", "{bad}/broken.json"],
        "broken.json: .*write it with safecf compare --out",
    ),
    "a port beyond 65535": (["{good}/model.safetensors", "--port", "70000"], "--port 70000 has to"),
    "a limit of 0": (
        ["{good}/model.safetensors", "--max-k", "0"],
        "--max-k 0 has to be at least 1",
    ),
    "no time": (["{good}/model.safetensors", "--timeout", "0"], "--timeout 0 has to be from"),
    "no end": (["{good}/model.safetensors", "--timeout", "inf"], "--timeout inf has to be from"),
    "an unknown log": (["{good}/model.safetensors", "--log", "xml"], "unknown --log 'xml'"),
    "a token with a space": (["{good}/model.safetensors", "--token", "a b"], "the token"),
    "no such host": (
        ["{good}/model.safetensors", "--host", "192.0.2.1", "--port", "0"],
        "cannot listen on 192.0.2.1, port 0: .*try another port",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_clear_line(run, folder, bad, name):
    arguments, message = CASES[name]
    code, out, err = run("serve", *(each.format(good=folder, bad=bad) for each in arguments))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(message, err)


def test_an_empty_token_in_the_environment_is_refused(run, folder, monkeypatch):
    monkeypatch.setenv("SAFECF_TOKEN", "")
    code, out, err = run("serve", folder / "model.safetensors", "--port", "0")
    assert (code, out) == (2, "")
    assert err == "safecf: SAFECF_TOKEN is empty, and would protect nothing; set it, or unset it\n"


def test_a_port_in_use_is_named(run, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("serve", folder / "model.safetensors", "--port", port)
    assert code == 2
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in err


def test_a_missing_extra_is_named(run, folder, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="fastapi")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"serving needs fastapi.*pip install 'safecf\[serve\]'"):
        safecf.serving.run  # noqa: B018


def test_the_log_has_one_line_of_json_per_request(folder, process):
    with process(folder / "model.safetensors", "--log", "json") as service:
        client = service.client()
        client.get("/health")
        client.get("/a%0Ab")
        client.post("/recommend", history=["item 5"])
        code, rest = service.end(signal.SIGTERM)
    lines = [json.loads(line) for line in rest.splitlines()]
    assert code == 0
    assert [(each["method"], each["path"], each["status"]) for each in lines] == [
        ("GET", "/health", 200),
        ("GET", "/a\nb", 404),
        ("POST", "/recommend", 200),
    ]
    assert all(each["ms"] > 0 and each["client"] == "127.0.0.1" for each in lines)


def test_settings_are_checked_at_once():
    with pytest.raises(TypeError, match=r"max_k=1.5 has to be a whole number; try max_k=1000"):
        Settings("model", max_k=1.5)
    with pytest.raises(ValueError, match="token is empty"):
        Settings("model", token="")
    with pytest.raises(ValueError, match="printable ASCII"):
        Settings("model", token="geheim\u00e9")


def test_facts_are_read_from_csv_and_odd_values_left_out(tmp_path):
    table = pa.table(
        {
            "id": [7, 8],
            "title": ["Amélie", "x" * 5000],
            "score": [float("nan"), 1.5],
            "when": pa.array([0, 1], pa.timestamp("s")),
        }
    )
    pa.parquet.write_table(table, tmp_path / "items.parquet")
    facts = read_facts(tmp_path / "items.parquet", [7, 8, 9])
    assert facts[7] == {"title": "Amélie", "score": None}
    assert len(facts[8]["title"]) == 1000
    pa.csv.write_csv(table.select(["id", "title"]), tmp_path / "items.csv")
    assert read_facts(tmp_path / "items.csv", [7])[7] == {"title": "Amélie"}


def test_a_fact_does_not_replace_the_id():
    catalogue = Catalogue([1], np.zeros(1, np.float32), {1: {"id": 7, "title": "Mars"}})
    assert catalogue.describe(1) == {"id": 1, "title": "Mars"}


def test_search_puts_beginnings_before_words_and_these_before_parts():
    titles = {1: "Marmalade", 2: "Grand Mar", 3: "Mars", 4: "Samara", 5: "No match"}
    facts = {item: {"title": text} for item, text in titles.items()}
    popularity = [0.1, 0.9, 0.2, 0.99, 1.0]
    catalogue = Catalogue(list(titles), pa.array(popularity, pa.float32()).to_numpy(), facts)
    assert catalogue.search("MAR", 10) == [3, 1, 2, 4]
    assert catalogue.search("", 2) == [5, 4]
    assert catalogue.search("%_*", 10) == []
