"""`safecf serve`: bad input is one clear line, and logs are one line per request."""

import gzip
import json
import logging
import re
import signal
import socket

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import safecf.serving
from safecf.errors import FileFormatError
from safecf.serving.catalogue import Catalogue, read_facts
from safecf.serving.log import Log
from safecf.serving.settings import Settings
from tests.cli.conftest import run
from tests.serving.conftest import fit, named
from tests.serving.service import running

__all__ = ["run"]  # a fixture


@pytest.fixture
def bad(folder, tmp_path):
    """Return files that cannot be served, by name."""
    other = fit().save(tmp_path / "other.safetensors")
    assert other is None
    (tmp_path / "empty.safetensors").touch()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "bare.json").write_text('{"format": "safecf evaluation 2"}')
    (tmp_path / "text.parquet").write_text("no Parquet")
    pa.parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "columns.parquet")
    pa.parquet.write_table(pa.table({"item": [1], "title": ["a"]}), tmp_path / "others.parquet")
    empty = {"item": pa.array([], pa.string()), "title": pa.array([], pa.string())}
    pa.parquet.write_table(pa.table(empty), tmp_path / "rows.parquet")
    return tmp_path


CASES = {
    "no such file": (["nothing.safetensors"], "nothing.safetensors"),
    "an empty file": (["{bad}/empty.safetensors"], "empty.safetensors: it is damaged"),
    "no such baseline": (["{good}/model.safetensors", "--baseline", "x"], "x.safetensors"),
    "titles that are none": (
        ["{good}/model.safetensors", "--items", "{bad}/text.parquet"],
        "text.parquet: .*give a Parquet, CSV or TSV file of items",
    ),
    "titles without columns": (
        ["{good}/model.safetensors", "--items", "{bad}/columns.parquet"],
        r"its columns are a, b; there have to be item \(or id\) and title",
    ),
    "titles of other items": (
        ["{good}/model.safetensors", "--items", "{bad}/others.parquet"],
        "none of its items is known to the model, such as 1, where 'item 0' is; give the ids",
    ),
    "titles without rows": (
        ["{good}/model.safetensors", "--items", "{bad}/rows.parquet"],
        "rows.parquet: it has no rows; give one per item$",
    ),
    "columns without data": (
        ["{good}/model.safetensors", "--user", "visitor"],
        "--user says how DATA is read, and there is none; give the data after the model",
    ),
    "no such titles": (
        ["{good}/model.safetensors", "--items", "{bad}/none.parquet"],
        "none.parquet: there is no such file; give a Parquet, CSV or TSV file of items",
    ),
    "an evaluation that is none": (
        ["{good}/model.safetensors", "--evaluation", "{bad}/broken.json"],
        "broken.json: .*write it with safecf compare --out",
    ),
    "a model as evaluation": (
        ["{good}/model.safetensors", "--evaluation", "{good}/model.safetensors"],
        "model.safetensors: it is not JSON, but binary; write it with safecf compare --out$",
    ),
    "an evaluation without anything": (
        ["{good}/model.safetensors", "--evaluation", "{bad}/bare.json"],
        "bare.json: .*'model' is missing; write it again",
    ),
    "no such data": (["{good}/model.safetensors", "none.csv"], "none.csv: there is no such file"),
    "data of other items": (
        ["{good}/model.safetensors", "demo"],
        "the ids|unknown to the model|no user ids",
    ),
    "a model as data": (
        ["{good}/model.safetensors", "{good}/baseline.safetensors"],
        "is a model, not data; give the interactions",
    ),
    "a host with a port": (
        ["{good}/model.safetensors", "--allow-host", "a.example:80"],
        "no name of a host; give the name alone",
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
    "no such name": (
        ["{good}/model.safetensors", "--host", "nohost.invalid"],
        "cannot listen on nohost.invalid, port 8000: .*; try an address of this machine",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_clear_line(run, folder, bad, name):
    arguments, message = CASES[name]
    code, out, err = run("serve", *(each.format(good=folder, bad=bad) for each in arguments))
    assert (code, out) == (2, "")
    *before, last = err.splitlines()
    assert all(line.startswith(("safecf: loading the ", "safecf: warning: ")) for line in before)
    assert re.search(message, last)


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
    assert err.startswith(
        f"safecf: cannot listen on 127.0.0.1, port {port}: Address already in use"
    )


def test_a_missing_extra_is_named(run, folder, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="fastapi")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"serving needs fastapi.*pip install 'safecf\[serve\]'"):
        safecf.serving.run  # noqa: B018


def test_every_line_of_the_log_is_json(folder, process, tmp_path):
    pa.parquet.write_table(
        pa.table({"user": ["user 3"] * 2, "item": ["item 5", "item new"]}),
        tmp_path / "data.parquet",
    )
    files = (folder / "model.safetensors", tmp_path / "data.parquet")
    with process(*files, "--log", "json", "--timeout", "1") as service:
        client = service.client()
        client.get("/health")
        client.get("/a%0Ab")
        sent = client.post("/recommend", history=["item 5"])
        client.send("HEAD", "/metrics")
        refused = client.get("/about", Host="rebound.example")
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(b"no HTTP at all\r\n\r\n")
            assert connection.recv(9) == b"HTTP/1.1 "
        code, rest = service.end(signal.SIGTERM)
    before = [json.loads(line) for line in service.said]
    assert [each["message"].partition(":")[0] for each in before[:2]] == [
        "loading the data",
        "loading the model",
    ]
    assert "1 of 2 items in the users' histories are unknown" in before[2]["message"]
    assert before[2]["level"] == "warning"
    assert before[-2]["message"].startswith("loaded in ")
    lines = [json.loads(line) for line in rest.splitlines()]
    assert code == 0
    requests = [each for each in lines if "method" in each]
    assert [(each["method"], each["path"], each["status"]) for each in requests] == [
        ("GET", "/health", 200),
        ("GET", "/a\nb", 404),
        ("POST", "/recommend", 200),
        ("HEAD", "/metrics", 200),
        ("GET", "/about", 421),
    ]
    assert [each["bytes"] for each in requests[2:]] == [len(sent.body), 0, len(refused.body)]
    assert all(each["ms"] > 0 and each["client"] == "127.0.0.1" for each in requests)
    (other,) = [each for each in lines if "method" not in each]
    assert (other["level"], other["message"]) == ("warning", "Invalid HTTP request received.")


def test_a_line_of_text_has_time_and_bytes(folder, capfd):
    with running(folder / "model.safetensors", log="text") as service:
        size = len(service.client().get("/health").body)
    line = rf"\d{{4}}(-\d\d){{2}}T\d\d:\d\d:\d\dZ 127.0.0.1 GET /health 200 \d+\.\d ms {size} bytes"
    assert re.fullmatch(line, capfd.readouterr().err.strip())


def test_tracebacks_are_one_line_of_json(capsys):
    log = Log("json")
    with log.others():
        try:
            raise RuntimeError("two\nlines")
        except RuntimeError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("error", "Exception in ASGI application")
    assert "RuntimeError: two\nlines" in found["traceback"]


@pytest.mark.parametrize(
    "given", [["none.safetensors"], ["{good}/model.safetensors", "--port=70000"]]
)
def test_errors_are_lines_of_json_too(run, folder, given):
    code, out, err = run("serve", *(each.format(good=folder) for each in given), "--log", "json")
    assert (code, out) == (2, "")
    assert [json.loads(line)["level"] for line in err.splitlines()][-1] == "error"


def test_loading_says_what_and_how_long(folder, process):
    given = ("--baseline", folder / "baseline.safetensors", "--items", folder / "titles.parquet")
    with process(folder / "model.safetensors", *given) as service:
        said = [line.rstrip() for line in service.said]
    assert said[:3] == [
        f"safecf: loading the model: {folder}/model.safetensors",
        f"safecf: loading the baseline: {folder}/baseline.safetensors",
        f"safecf: loading the items: {folder}/titles.parquet",
    ]
    seconds = r"\d+\.\d s"
    wanted = (
        rf"safecf: loaded in {seconds} \(model {seconds}, baseline {seconds}, items {seconds}\)"
    )
    assert re.fullmatch(wanted, said[3])
    assert said[4].startswith(f"safecf: serving {folder}/model.safetensors at http://127.0.0.1:")


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


TABLES = {
    "integers": {"item": [7, 8], "title": [1917, 300]},
    "numbers": {"item": [7, 8], "title": [8.5, None]},
    "categories": {
        "item": pa.array(["x", "y"]).dictionary_encode(),
        "title": pa.array(["Alien", "Brazil"]).dictionary_encode(),
        "genre": pa.array(["horror", "satire"]).dictionary_encode(),
    },
    "views": {"item": [7, 8], "title": pa.array(["Alien", "Brazil"], pa.string_view())},
}


@pytest.mark.parametrize("name", TABLES)
def test_titles_of_every_kind_are_texts(tmp_path, name):
    try:
        pa.parquet.write_table(pa.table(TABLES[name]), tmp_path / "items.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not write views of texts")
    ids = ["x", "y"] if name == "categories" else [7, 8]
    facts = read_facts(tmp_path / "items.parquet", ids)
    titles = [facts[each].get("title") for each in ids]
    wanted = {"integers": ["1917", "300"], "numbers": ["8.5", None]}
    assert titles == wanted.get(name, ["Alien", "Brazil"])
    if name == "categories":
        assert facts["x"]["genre"] == "horror"
    assert Catalogue(ids, np.zeros(2, np.float32), facts).search("", 2) == ids


@pytest.mark.parametrize(
    ("suffix", "separator"), [(".csv", ","), (".tsv", "\t"), (".tsv.gz", "\t")]
)
def test_text_files_are_read_with_the_ids_of_the_model(tmp_path, suffix, separator):
    rows = [["item", "title"], ["007", "1917"], ["008", "Amélie"]]
    text = "".join(separator.join(row) + "\n" for row in rows)
    path = tmp_path / f"items{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    assert read_facts(path, ["007", "008"]) == {
        "007": {"title": "1917"},
        "008": {"title": "Amélie"},
    }
    assert read_facts(path, [8]) == {8: {"title": "Amélie"}}


BAD_TITLES = {
    "lists as titles": ({"item": [7], "title": [["a", "b"]]}, "the column title holds list"),
    "lists as ids": ({"item": [[7]], "title": ["a"]}, "the column item holds list.*, not ids"),
    "bytes as titles": ({"item": [7], "title": [b"a"]}, "the column title holds binary"),
    "fractions as ids": ({"item": [7.5], "title": ["a"]}, "the column item holds double, not ids"),
}


@pytest.mark.parametrize("name", BAD_TITLES)
def test_titles_that_are_none_are_named(tmp_path, name):
    columns, message = BAD_TITLES[name]
    pa.parquet.write_table(pa.table(columns), tmp_path / "items.parquet")
    with pytest.raises(FileFormatError, match=message):
        read_facts(tmp_path / "items.parquet", [7])


def test_text_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "items.csv"
    path.write_bytes("item,title\n7,Amélie\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"items.csv: .*UTF8.*; convert it, as in iconv"):
        read_facts(path, [7])


def test_a_missing_file_of_items_is_named(tmp_path):
    for path in (tmp_path / "none.parquet", tmp_path / "none.csv"):
        with pytest.raises(FileNotFoundError, match=r"none\.\w+: there is no such file; give a"):
            read_facts(path, [7])
    (tmp_path / "items").mkdir()
    with pytest.raises(FileFormatError, match=r"items: .*directory.*; give a Parquet, CSV or TSV"):
        read_facts(tmp_path / "items", [7])


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


def test_search_puts_whole_titles_and_ids_first():
    popularity = np.array([0.1, 0.5, 0.9, 0.2], dtype=np.float32)
    bare = Catalogue([17, 171, 1735, 217], popularity)
    assert bare.search("17", 2) == [17, 1735]
    titles = {17: "Alien", 171: "Alien Resurrection", 1735: "My Alien", 217: "Room 17"}
    facts = {item: {"title": text} for item, text in titles.items()}
    titled = Catalogue(list(titles), popularity, facts)
    assert titled.search("alien", 9) == [17, 171, 1735]
    assert titled.search("17", 9) == [17, 217]
    assert titled.search("171", 9) == [171]


@pytest.mark.parametrize("blank", ["", "  ", "\t\u00a0", None])
def test_a_blank_title_is_none(tmp_path, blank):
    table = pa.table({"item": ["x", "y"], "title": [blank, "Brazil"], "year": [1979, 1985]})
    pa.parquet.write_table(table, tmp_path / "items.parquet")
    assert read_facts(tmp_path / "items.parquet", ["x", "y"]) == {
        "x": {"year": 1979},
        "y": {"title": "Brazil", "year": 1985},
    }


def test_known_users_of_the_data_do_not_get_what_they_have(folder, process, tmp_path):
    known = named()
    pairs = known.to_csr().tocoo()
    table = pa.table({"who": known.user_ids[pairs.row], "what": known.item_ids[pairs.col]})
    pa.csv.write_csv(table, tmp_path / "clicks.csv")
    columns = ("--user", "who", "--item", "what")
    with process(folder / "model.safetensors", tmp_path / "clicks.csv", *columns) as service:
        client = service.client()
        has = set(known.item_ids[known.to_csr()[9].indices])
        found = client.post("/recommend", user="user 9", k=60).json
        assert {each["id"] for each in found["items"]} == set(known.item_ids) - has
        assert client.get("/about").json["histories"] == "strings"
