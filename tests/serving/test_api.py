"""The HTTP interface: answers, limits, problems, tokens, health and metrics."""

import json
import re

import numpy as np
import pytest

from tests.serving.conftest import best, listed
from tests.serving.service import running

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def service(folder):
    files = (folder / "model.safetensors", folder / "baseline.safetensors")
    with running(*files, folder / "titles.parquet", max_history=50, max_k=30) as found:
        yield found


@pytest.fixture
def client(service):
    found = service.client()
    yield found
    found.close()


@pytest.mark.parametrize("which", ["model", "baseline"])
def test_recommendations_are_those_of_the_library(client, request, which):
    model = request.getfixturevalue(which)
    asked = {"history": ["item 5", "item 6", "zzz"], "k": 7, "exclude": ["item 9"]}
    reply = client.post("/recommend", asked | {"model": which})
    assert reply.status == 200
    assert listed(reply) == best(model, "item 5", "item 6", k=7, filter_items=[9])
    assert reply.json["unknown"] == ["zzz"]
    assert reply.json["popular"] is False
    assert reply.json["model"] == type(model).__name__
    assert reply.json["items"][0]["title"].startswith("The ")
    assert isinstance(reply.json["items"][0]["genres"], list)
    assert client.post("/recommend", history=[], model=which).json["popular"] is True


def test_search_finds_words_without_accents_and_popular_titles_first(client, model):
    found = client.get("/search?q=cafe%20the&k=30").json["items"]
    assert [each["id"] for each in found]
    assert all("Café" in each["title"] for each in found)
    places = [int(each["id"].split()[1]) for each in found]
    assert (np.diff(model.popularity()[places]) <= 0).all()
    assert len(client.get("/search").json["items"]) == 10


def test_unknown_ids_of_all_lists_are_named(client):
    asked = {"history": ["item 5", "a"], "items": ["item 9", "b", "item 7"], "exclude": ["c", "a"]}
    reply = client.post("/recommend", asked)
    assert reply.json["unknown"] == ["a", "b", "c"]
    assert {each["id"] for each in reply.json["items"]} == {"item 7", "item 9"}
    both = client.post("/recommend", asked | {"exclude": ["item 9"]}).json
    assert [each["id"] for each in both["items"]] == ["item 7"]
    assert client.post("/recommend", user="user 3", exclude=[7]).json["unknown"] == [7]
    reply = client.post("/items", ids=["item 4", "nothing", 4, "nothing"])
    assert [each["year"] for each in reply.json["items"]] == [1954]
    assert reply.json["unknown"] == ["nothing", 4]
    explained = client.post("/explain", item="item 9", history=["item 5", "zzz"]).json
    assert explained["unknown"] == ["zzz"]


def test_metrics_count_requests_batches_and_seconds(client):
    before = client.get("/metrics").body.decode()
    client.post("/recommend", history=["item 5"])
    client.post("/recommend", user="nobody")
    client.get("/no/such/path")
    after = client.get("/metrics").body.decode()

    def value(text, name):
        lines = [line for line in text.splitlines() if line.startswith(name + " ")]
        return float(lines[0].split()[-1]) if lines else 0.0

    for name, more in {
        'safecf_requests_total{path="/recommend",status="200"}': 1,
        'safecf_requests_total{path="/recommend",status="404"}': 1,
        'safecf_requests_total{path="other",status="404"}': 1,
        'safecf_request_seconds_count{path="/recommend"}': 2,
        "safecf_batch_size_sum": 2,
    }.items():
        assert value(after, name) - value(before, name) == more, name
    assert "/no/such/path" not in after


ID = "an integer of 64 bits, or a text of at most 1000 characters"
DEEP = b'{"history": ' + b"[" * 5000 + b"]" * 5000 + b"}"
LONG = json.dumps({"history": ["a"] * 51}).encode()
BAD = [
    (b"{", 400, "the body is no JSON: EOF"),
    (b"[]", 422, "the body has to be an object, as in"),
    (b'{"user": "user 3", "K": 3}', 422, "K: this key is not known"),
    (b'{"user": "user 3", "k": 31}', 422, "k: has to be a whole number from 1 to 30; see"),
    (b'{"user": "user 3", "k": "3"}', 422, "k: has to be a whole number"),
    (b'{"history": "item 5"}', 422, "history: has to be a list"),
    (b'{"history": [true]}', 422, f"history.0: has to be {ID}"),
    (b'{"history": ["a"], "weights": [NaN]}', 422, "weights.0: has to be a number"),
    (LONG, 422, "history: has a length of 51, where 50 is the most"),
    (b'{"user": "a", "keep_history": "yes"}', 422, "keep_history: has to be true or false"),
    (b'{"user": "a", "model": "x"}', 422, "model: has to be 'model' or 'basel"),
    (b'{"user": "nobody"}', 404, "unknown user 'nobody': the model knows 200"),
    (DEEP, 400, "the body is no JSON"),
]


@pytest.mark.parametrize(("body", "status", "words"), BAD, ids=lambda each: str(each)[:40])
def test_a_bad_request_gets_a_problem_with_one_clear_line(client, body, status, words):
    reply = client.send("POST", "/recommend", body, {"Content-Type": "application/json"})
    assert reply.status == reply.json["status"] == status
    assert reply.headers["content-type"] == PROBLEM
    assert "\n" not in reply.json["detail"]
    assert len(reply.json["detail"]) <= 501
    assert words in reply.json["detail"]
    words_of_pydantic = "[Ii]nput|valid (string|integer|list|dict)"
    assert not re.search(words_of_pydantic, reply.text)


def test_a_key_that_is_missing_is_named(client):
    assert client.post("/similar", {}).json["detail"] == "item: it is missing; see /openapi.json"
    reply = client.get("/search?k=x&q=a")
    assert reply.json["detail"] == "query.k: has to be a whole number; see /openapi.json"


ERRORS = {404: ["GET /nothing", "GET /../../../../etc/passwd", "GET /%2e%2e/%2e%2e/etc/passwd"]}
ERRORS[404] += ["GET /static/..%2f..%2fapp.py", "GET //page.css", "GET /page.css/"]
ERRORS |= {405: ["GET /recommend", "PUT /recommend", "DELETE /"], 415: ["POST /recommend"]}
ERRORS |= {422: ["GET /search?k=0", "GET /search?k=31", "GET /search?q=" + 201 * "a"]}


@pytest.mark.parametrize("status", ERRORS)
def test_other_errors_are_problems_too(client, status):
    for asked in ERRORS[status]:
        reply = client.send(*asked.split())
        assert reply.status == reply.json["status"] == status, asked
        assert reply.headers["content-type"] == PROBLEM


def test_the_openapi_document_has_limits_and_examples_that_work(client):
    document = client.get("/openapi.json").json
    posts = {path: each["post"] for path, each in document["paths"].items() if "post" in each}
    schema = posts["/recommend"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["k"]["maximum"] == 30
    assert client.get("/about").json["limits"] == {"history": 50, "k": 30}
    statuses = {}
    for path, each in posts.items():
        if "requestBody" in each:
            examples = each["requestBody"]["content"]["application/json"]["schema"]["examples"]
            statuses[path] = [client.post(path, example).status for example in examples]
    assert statuses.pop("/history") == [422]  # it was started without the data
    assert statuses.pop("/recommend") == [200, 200]
    assert statuses == {"/similar": [200], "/explain": [200], "/items": [200]}


def test_a_token_is_asked_for_everywhere_but_at_the_page_and_the_health(folder):
    with running(folder / "model.safetensors", token="s3cret") as service:
        wrong = [service.client(), service.client("s3cre"), service.client("s3cret2")]
        for client in wrong:
            for path in ("/about", "/metrics", "/search", "/openapi.json", "/nothing"):
                assert client.get(path).status == 401
            reply = client.post("/recommend", history=["item 5"])
            assert reply.status == 401
            assert reply.headers["content-type"] == PROBLEM
            assert reply.headers["www-authenticate"] == "Bearer"
            assert client.post("/reload").status == 401
            assert client.get("/health").json == {"status": "ok"}
            assert client.get("/").status == 200
        right = service.client("s3cret")
        assert right.post("/recommend", history=["item 5"]).status == 200
        assert right.get("/health").json["models"]["model"]["class"] == "SAFER2"
        assert right.get("/openapi.json").json["security"] == [{"token": []}]
        given = {"Basic s3cret": 401, "Bearer \xff": 401, "s3cret": 401}
        given |= {"bearer s3cret": 200, "BEARER  s3cret": 200}
        for text, status in given.items():
            assert service.client().get("/about", Authorization=text).status == status


def test_heads_are_those_of_the_answers(client):
    for path in ("/", "/health", "/page.js", "/openapi.json", "/search?k=1"):
        whole, head = client.get(path), client.send("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    assert client.send("HEAD", "/nothing").status == 404
    assert client.send("HEAD", "/recommend").status == 405


OWN, OTHER = "127.0.0.1", "rebound.example"


NAMES = [
    ({}, (OWN, "localhost:8000", "LOCALHOST.", "[::1]:8000"), (OTHER, f"{OWN}.{OTHER}")),
    ({"allow_host": ["Recommend.Example"]}, (OWN, "recommend.example:443"), (OTHER,)),
    ({"allow_host": ["*"]}, (OWN, OTHER), ()),
    ({"host": "0.0.0.0"}, (OWN, OTHER), ()),
    ({"host": "0.0.0.0", "allow_host": ["recommend.example"]}, (OWN,), (OTHER,)),
]


@pytest.mark.parametrize(("options", "served", "refused"), NAMES)
def test_the_service_answers_to_its_own_names_only(folder, options, served, refused):
    with running(folder / "model.safetensors", **options) as service:
        client = service.client()
        assert {client.get("/search", Host=name).status for name in served} == {200}
        for name in refused:
            reply = client.get("/search", Host=name)
            assert reply.status == reply.json["status"] == 421
            assert reply.json["detail"].startswith(f"{name} is no name of this service; see --all")


def test_pages_of_other_sites_cannot_reload(folder):
    with running(folder / "model.safetensors", allow_host=["recommend.example"]) as service:
        allowed = (None, f"http://{OWN}:{service.port}", "https://recommend.example")
        client, generation = service.client(), 1
        for origin in (*allowed, f"http://{OWN}:1", "https://evil.example", "null"):
            headers = {"Content-Type": "text/plain"} | ({"Origin": origin} if origin else {})
            reply = client.send("POST", "/reload", b"", headers)
            assert reply.status == (200 if origin in allowed else 403), origin
            generation += origin in allowed
            assert client.get("/health").json["generation"] == generation
