"""The HTTP interface: answers, limits, problems, tokens, health and metrics."""

import json
import re

import numpy as np
import pytest

from tests.serving.conftest import ITEMS, USERS, best, listed
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


def test_known_users_and_similar_items(client, model):
    user = model.recommend(9, None, N=5, filter_already_liked_items=False)
    ids, scores = model.similar_items(9, N=5)  # the item itself is the first one
    for reply, places, right in (
        (client.post("/recommend", user="user 9", k=5), *user),
        (client.post("/similar", item="item 9", k=4), ids[1:], scores[1:]),
    ):
        assert listed(reply) == list(zip(model.item_ids[places], right.tolist(), strict=True))


def test_explanations_add_up_to_the_score_of_the_recommendation(client):
    history = ["item 5", "item 6", "item 7"]
    best = client.post("/recommend", history=history, k=1).json["items"][0]
    found = client.post("/explain", item=best["id"], history=[*history, "zzz"]).json
    assert found["item"]["id"] == best["id"]
    assert found["unknown"] == ["zzz"]
    assert sorted(each["id"] for each in found["items"]) == history
    parts = [each["score"] for each in found["items"]]
    assert parts == sorted(parts, reverse=True)
    assert sum(parts) == pytest.approx(found["score"]) == pytest.approx(best["score"], rel=1e-4)


def test_without_a_history_the_popular_items_are_flagged(client):
    assert client.post("/recommend", history=[]).json["popular"] is True


def test_search_finds_words_without_accents_and_popular_titles_first(client, model):
    found = client.get("/search?q=cafe%20the&k=30").json["items"]
    assert [each["id"] for each in found]
    assert all("Café" in each["title"] for each in found)
    places = [int(each["id"].split()[1]) for each in found]
    assert (np.diff(model.popularity()[places]) <= 0).all()
    assert len(client.get("/search").json["items"]) == 10


def test_items_are_described_and_unknown_ones_named(client):
    reply = client.post("/items", ids=["item 4", "nothing", 4, "nothing"])
    assert [each["year"] for each in reply.json["items"]] == [1954]
    assert reply.json["unknown"] == ["nothing", 4]


def test_unknown_ids_of_all_lists_are_named(client):
    asked = {"history": ["item 5", "a"], "items": ["item 9", "b", "item 7"], "exclude": ["c", "a"]}
    reply = client.post("/recommend", asked)
    assert reply.json["unknown"] == ["a", "b", "c"]
    assert {each["id"] for each in reply.json["items"]} == {"item 7", "item 9"}
    both = client.post("/recommend", asked | {"exclude": ["item 9"]}).json
    assert [each["id"] for each in both["items"]] == ["item 7"]
    assert client.post("/recommend", user="user 3", exclude=[7]).json["unknown"] == [7]


def test_about_and_health_tell_what_is_served(client, model):
    about = client.get("/about").json
    sizes = {"users": USERS, "items": ITEMS}
    assert about["models"] == {
        "model": {"class": "SAFER2", "tail": model.tail, **sizes},
        "baseline": {"class": "IALS", "tail": None, **sizes},
    }
    assert about["limits"] == {"history": 50, "k": 30}
    health = client.get("/health").json
    assert (health["status"], health["problem"]) == ("ok", None)


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


BAD = {
    "no JSON": (b"{", 400, "the body is no JSON: EOF"),
    "a list": (b"[]", 422, "the body has to be an object, as in"),
    "unknown key": (b'{"user": "user 3", "K": 3}', 422, "K: this key is not known"),
    "k too large": (b'{"user": "user 3", "k": 31}', 422, "k: has to be .* from 1 to 30; see"),
    "k a text": (b'{"user": "user 3", "k": "3"}', 422, "k: has to be a whole number"),
    "history a text": (b'{"history": "item 5"}', 422, "history: has to be a list"),
    "true as id": (
        b'{"history": [true]}',
        422,
        "history.0: has to be an integer of 64 bits, or a text of at most 1000 characters",
    ),
    "weight NaN": (b'{"history": ["a"], "weights": [NaN]}', 422, "weights.0: has to be a number"),
    "long history": (
        json.dumps({"history": ["a"] * 51}).encode(),
        422,
        "history: has a length of 51, where 50 is the most",
    ),
    "keep_history yes": (
        b'{"user": "user 3", "keep_history": "yes"}',
        422,
        "keep_history: has to be true or false",
    ),
    "unknown model": (b'{"user": "a", "model": "x"}', 422, "model: has to be 'model' or 'basel"),
    "unknown user": (b'{"user": "nobody"}', 404, "unknown user 'nobody': the model knows 200"),
    "deep": (b'{"history": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "the body is no JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_gets_a_problem_with_one_clear_line(client, name):
    body, status, message = BAD[name]
    reply = client.send("POST", "/recommend", body, {"Content-Type": "application/json"})
    assert reply.status == reply.json["status"] == status
    assert reply.headers["content-type"] == PROBLEM
    assert "\n" not in reply.json["detail"]
    assert len(reply.json["detail"]) <= 501
    assert re.search(message, reply.json["detail"])
    assert not re.search(
        "[Ii]nput|valid (string|integer|list|dict)", reply.text
    )  # no words of pydantic


def test_a_key_that_is_missing_is_named(client):
    assert client.post("/similar", {}).json["detail"] == "item: it is missing; see /openapi.json"
    reply = client.get("/search?k=x&q=a")
    assert reply.json["detail"] == "query.k: has to be a whole number; see /openapi.json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/recommend", 405),
        ("PUT", "/recommend", 405),
        ("DELETE", "/", 405),
        ("GET", "/search?k=0", 422),
        ("GET", "/search?k=31", 422),
        ("GET", "/search?q=" + 201 * "a", 422),
        ("POST", "/recommend", 415),
        ("GET", "/../../../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/static/..%2f..%2fapp.py", 404),
        ("GET", "//page.css", 404),
        ("GET", "/page.css/", 404),
    ],
)
def test_other_errors_are_problems_too(client, method, path, status):
    reply = client.send(method, path)
    assert reply.status == reply.json["status"] == status
    assert reply.headers["content-type"] == PROBLEM


def test_the_openapi_document_has_limits_and_examples_that_work(client):
    document = client.get("/openapi.json").json
    posts = {path: each["post"] for path, each in document["paths"].items() if "post" in each}
    schema = posts["/recommend"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["k"]["maximum"] == 30
    statuses = {}
    for path, each in posts.items():
        if "requestBody" in each:
            content = each["requestBody"]["content"]["application/json"]["schema"]
            for example in content["examples"]:
                statuses.setdefault(path, []).append(client.post(path, example).status)
    assert statuses.pop("/history") == [422]  # it was started without the data
    assert statuses == {
        "/recommend": [200, 200],
        "/similar": [200],
        "/explain": [200],
        "/items": [200],
    }


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
        basic = service.client()
        assert basic.get("/about", Authorization="Basic s3cret").status == 401
        assert basic.get("/about", Authorization="Bearer \xff").status == 401
        assert basic.get("/about", Authorization="bearer s3cret").status == 200
        assert basic.get("/about", Authorization="BEARER  s3cret").status == 200
        assert basic.get("/about", Authorization="s3cret").status == 401


def test_heads_are_those_of_the_answers(client):
    for path in ("/", "/health", "/page.js", "/openapi.json", "/search?k=1"):
        whole, head = client.get(path), client.send("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    assert client.send("HEAD", "/nothing").status == 404
    assert client.send("HEAD", "/recommend").status == 405


OWN, OTHER = "127.0.0.1", "rebound.example"


@pytest.mark.parametrize(
    ("options", "served", "refused"),
    [
        (
            {},
            (OWN, "localhost:8000", "LOCALHOST.", "[::1]:8000"),
            (OTHER, "127.0.0.1.rebound.example"),
        ),
        ({"allow_host": ["Recommend.Example"]}, (OWN, "recommend.example:443"), (OTHER,)),
        ({"allow_host": ["*"]}, (OWN, OTHER), ()),
        ({"host": "0.0.0.0"}, (OWN, OTHER), ()),
        ({"host": "0.0.0.0", "allow_host": ["recommend.example"]}, (OWN,), (OTHER,)),
    ],
)
def test_the_service_answers_to_its_own_names_only(folder, options, served, refused):
    with running(folder / "model.safetensors", **options) as service:
        client = service.client()
        assert {client.get("/search", Host=name).status for name in served} == {200}
        for name in refused:
            reply = client.get("/search", Host=name)
            assert reply.status == reply.json["status"] == 421
            assert reply.json["detail"].startswith(f"{name} is no name of this service; see --all")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:{port}", 200),
        ("http://127.0.0.1:1", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("https://recommend.example", 200),
    ],
)
def test_pages_of_other_sites_cannot_reload(folder, origin, status):
    with running(folder / "model.safetensors", allow_host=["recommend.example"]) as service:
        headers = {"Content-Type": "text/plain"}
        if origin is not None:
            headers["Origin"] = origin.format(port=service.port)
        client = service.client()
        assert client.send("POST", "/reload", b"", headers).status == status
        assert client.get("/health").json["generation"] == (2 if status == 200 else 1)
