"""`safecf serve`: bad input is one clear line, and logs are one line per request."""

import gzip
import json
import logging
import re
import signal
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import safecf.serving
from safecf import FileFormatError
from safecf.serving import Settings
from safecf.serving.catalogue import Catalogue, read_facts
from safecf.serving.log import Log
from tests.cli.conftest import run
from tests.helpers import refused
from tests.serving.service import running

__all__ = ["run"]  # a fixture


@pytest.fixture
def bad(tmp_path):
    """Return a folder of files that cannot be served."""
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "text.parquet").write_text("no Parquet")
    pa.parquet.write_table(pa.table({"item": [1], "title": ["a"]}), tmp_path / "others.parquet")
    return tmp_path


CASES = [
    ("nothing.safetensors", "nothing.safetensors"),
    ("{model} --baseline x", "x.safetensors"),
    ("{model} --items {bad}/text.parquet", "text.parquet: .*give a Parquet, CSV or TSV file of it"),
    ("{model} --items {bad}/others.parquet", "none of its items is known to the model, such as 1"),
    ("{model} --user visitor", "--user says how DATA is read, and there is none; give the data"),
    ("{model} --evaluation {bad}/broken.json", "broken.json: .*write it with safecf compare --out"),
    ("{model} --evaluation {model}", "it is not JSON, but binary; write it with safecf compare"),
    ("{model} demo", "the ids|unknown to the model|no user ids"),
    ("{model} {model}", "is a model, not data; give the interactions"),
    ("{model} --allow-host a.example:80", "no name of a host; give the name alone"),
    ("{model} --port 70000", "--port 70000 has to"),
    ("{model} --max-k 0", "--max-k 0 has to be at least 1"),
    ("{model} --timeout 0", "--timeout 0 has to be from"),
    ("{model} --timeout inf", "--timeout inf has to be from"),
    ("{model} --host 192.0.2.1 --port 0", "cannot listen on 192.0.2.1, port 0: .*try another port"),
    ("{model} --host nohost.invalid", "nohost.invalid, port 8000: .*; try an address of this mach"),
]


@pytest.mark.parametrize(("given", "message"), CASES)
def test_bad_input_is_one_clear_line(run, folder, bad, given, message):
    arguments = given.format(model=folder / "model.safetensors", bad=bad).split()
    if "--host" not in given and "--port" not in given:
        arguments += ["--port", "0"]  # whatever else this machine serves
    code, out, err = run("serve", *arguments)
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
    said = f"safecf: cannot listen on 127.0.0.1, port {port}: Address already in use"
    assert err.startswith(said)


def test_a_missing_extra_is_named(run, folder, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="fastapi")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"serving needs fastapi.*pip install 'safecf\[serve\]'"):
        safecf.serving.run  # noqa: B018


def test_every_line_of_the_log_is_json(folder, process, tmp_path):
    """And the users of the data do not get what they have."""
    data = {"who": ["user 3"] * 2, "what": ["item 5", "item new"]}
    pa.parquet.write_table(pa.table(data), tmp_path / "data.parquet")
    given = (tmp_path / "data.parquet", "--user", "who", "--item", "what", "--log", "json")
    with process(folder / "model.safetensors", *given, "--timeout", "1") as service:
        client = service.client()
        client.get("/health")
        client.get("/a%0Ab")
        sent = client.post("/recommend", history=["item 5"])
        client.send("HEAD", "/metrics")
        refused = client.get("/about", Host="rebound.example")
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(b"no HTTP at all\r\n\r\n")
            assert connection.recv(9) == b"HTTP/1.1 "
        found = client.post("/recommend", user="user 3", k=60).json["items"]
        assert {each["id"] for each in found} == {f"item {n}" for n in range(60) if n != 5}
        code, rest = service.end(signal.SIGTERM)
    before = [json.loads(line) for line in service.said]
    said = [each["message"].partition(":")[0] for each in before[:2]]
    assert said == ["loading the data", "loading the model"]
    assert "1 of 2 items in the users' histories are unknown" in before[2]["message"]
    assert before[2]["level"] == "warning"
    assert before[-2]["message"].startswith("loaded in ")
    lines = [json.loads(line) for line in rest.splitlines()]
    assert code == 0
    requests = [each for each in lines if "method" in each]
    asked = [("GET", "/health", 200), ("GET", "/a\nb", 404), ("POST", "/recommend", 200)]
    asked += [("HEAD", "/metrics", 200), ("GET", "/about", 421), ("POST", "/recommend", 200)]
    assert [(each["method"], each["path"], each["status"]) for each in requests] == asked
    assert [each["bytes"] for each in requests[2:5]] == [len(sent.body), 0, len(refused.body)]
    assert all(each["ms"] > 0 and each["client"] == "127.0.0.1" for each in requests)
    (other,) = [each for each in lines if "method" not in each]
    assert (other["level"], other["message"]) == ("warning", "Invalid HTTP request received.")


def test_a_line_of_text_has_time_and_bytes(folder, capfd):
    with running(folder / "model.safetensors", log="text") as service:
        size = len(service.client().get("/health").body)
        service.client().get("/a%0Ab%1B")
    line, other = capfd.readouterr().err.splitlines()
    time = r"\d{4}(-\d\d){2}T\d\d:\d\d:\d\dZ"
    assert re.fullmatch(rf"{time} 127.0.0.1 GET /health 200 \d+\.\d ms {size} bytes", line)
    assert r"GET /a\nb\x1b 404" in other


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


def test_errors_are_lines_of_json_too(run, folder):
    code, out, err = run("serve", folder / "model.safetensors", "--port=70000", "--log", "json")
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
    wanted = r"safecf: loaded in \d+\.\d s \(model S, baseline S, items S\)"
    assert re.fullmatch(wanted.replace("S", r"\d+\.\d s"), said[3])
    assert said[4].startswith(f"safecf: serving {folder}/model.safetensors at http://127.0.0.1:")


def test_settings_are_checked_at_once():
    with pytest.raises(TypeError, match=r"max_k=1.5 has to be a whole number; try max_k=1000"):
        Settings("model", max_k=1.5)
    with pytest.raises(ValueError, match="token is empty"):
        Settings("model", token="")
    with pytest.raises(ValueError, match="printable ASCII"):
        Settings("model", token="geheim\u00e9")


def facts_of(tmp_path, table, ids):
    """Write a table of items; return what is read of it."""
    pa.parquet.write_table(pa.table(table), tmp_path / "items.parquet")
    return read_facts(tmp_path / "items.parquet", ids)


def test_odd_values_are_left_out_of_facts(tmp_path):
    when = pa.array([0, 1], pa.timestamp("s"))
    table = {"id": [7, 8], "title": ["Amélie", "x" * 5000], "score": [np.nan, 1.5], "when": when}
    facts = facts_of(tmp_path, table, [7, 8, 9])
    assert facts[7] == {"title": "Amélie", "score": None}
    assert len(facts[8]["title"]) == 1000
    assert facts_of(tmp_path, {"item": ["x"], "title": ["  \t\u00a0"], "year": [1979]}, ["x"]) == {
        "x": {"year": 1979}
    }


TITLES = [
    ([7, 8], [1917, 300], ["1917", "300"]),
    ([7, 8], [8.5, None], ["8.5", None]),
    (["x", "y"], pa.array(["A", "B"]).dictionary_encode(), ["A", "B"]),
    (["x", "y"], pa.array(["A", "B"], pa.large_string()), ["A", "B"]),
]


@pytest.mark.parametrize(("ids", "titles", "wanted"), TITLES)
def test_titles_of_every_kind_are_texts(tmp_path, ids, titles, wanted):
    items = pa.array(ids).dictionary_encode()
    facts = facts_of(tmp_path, {"item": items, "title": titles, "genre": items}, ids)
    assert [facts[each].get("title") for each in ids] == wanted
    assert [facts[each]["genre"] for each in ids] == ids
    assert Catalogue(ids, np.zeros(2, np.float32), facts).search("", 2) == ids


@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("tsv", "\t"), ("tsv.gz", "\t")])
def test_text_files_are_read_with_the_ids_of_the_model(tmp_path, suffix, separator):
    rows = [["item", "title"], ["007", "1917"], ["008", "Amélie"]]
    text = "".join(separator.join(row) + "\n" for row in rows).encode()
    path = tmp_path / f"items.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    titles = {"007": {"title": "1917"}, "008": {"title": "Amélie"}}
    assert read_facts(path, ["007", "008"]) == titles
    assert read_facts(path, [8]) == {8: titles["008"]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"item": [7], "title": [["a", "b"]]}, "the column title holds list"),
        ({"item": [[7]], "title": ["a"]}, "not ids; cast it to integers or strings"),
        ({"item": [7], "title": [b"a"]}, "the column title holds binary"),
        ({"item": [7.5], "title": ["a"]}, "the column item holds double, not ids"),
        ({"a": [7], "b": ["a"]}, "its columns are a, b; there have to be item (or id) and title"),
        ({"item": pa.array([], pa.int64()), "title": pa.array([], pa.string())}, "it has no rows"),
    ],
)
def test_files_of_items_that_cannot_be_read_are_named(tmp_path, columns, words):
    with pytest.raises(FileFormatError, match=re.escape(words)):
        facts_of(tmp_path, columns, [7])
    (tmp_path / "items.csv").write_bytes("item,title\n7,Amélie\n".encode("latin-1"))
    with refused(FileFormatError, "items.csv: ", "UTF8", "convert it, as in iconv"):
        read_facts(tmp_path / "items.csv", [7])
    for missing in (tmp_path / "none.parquet", tmp_path / "none.csv"):
        with refused(FileNotFoundError, missing, "there is no such file; give a"):
            read_facts(missing, [7])
    with refused(FileFormatError, "give a Parquet, CSV or TSV"):
        read_facts(tmp_path, [7])


def catalogue(titles, popularity):
    """Return a catalogue of items with these titles, by id."""
    facts = {item: {"id": 7, "title": text} for item, text in titles.items()}
    found = Catalogue(list(titles), np.array(popularity, np.float32), facts)
    assert all(found.describe(item) == {"id": item, "title": titles[item]} for item in titles)
    return found.search


def test_search_puts_whole_titles_and_ids_before_beginnings_words_and_parts():
    titles = {1: "Marmalade", 2: "Grand Mar", 3: "Mars", 4: "Samara", 5: "No match"}
    search = catalogue(titles, [0.1, 0.9, 0.2, 0.99, 1.0])
    assert search("MAR", 10) == [3, 1, 2, 4]
    assert search("", 2) == [5, 4]
    assert search("%_*", 10) == []
    popularity = [0.1, 0.5, 0.9, 0.2]
    bare = Catalogue([17, 171, 1735, 217], np.array(popularity, np.float32))
    assert bare.search("17", 2) == [17, 1735]
    titles = {17: "Alien", 171: "Alien Resurrection", 1735: "My Alien", 217: "Room 17"}
    search = catalogue(titles, popularity)
    assert search("alien", 9) == [17, 171, 1735]
    assert search("17", 9) == [17, 217]
    assert search("171", 9) == [171]
