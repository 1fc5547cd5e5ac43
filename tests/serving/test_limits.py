"""What the service is like without any options: its limits, and how it compares tokens."""

import asyncio
import hmac
import json
import secrets
import socket
import threading

from safecf import SAFER2
from safecf.serving import Settings, create_app
from tests.serving.service import PATIENCE, running

ASKED = json.dumps({"history": ["item 5", "item 6"], "k": 5}).encode()
JSON = {"Content-Type": "application/json"}


async def call(app, path, body=None):
    """Call the application without a connection; return the status, the headers and the body."""
    sent, found = [{"type": "http.request", "body": body or b""}], []
    scope = {"type": "http", "path": path, "method": "GET" if body is None else "POST"}
    scope |= {"query_string": b"", "headers": [(b"content-type", b"application/json")]}

    async def receive():
        return sent.pop() if sent else await asyncio.Event().wait()

    async def send(message):
        found.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in found[0]["headers"]}
    return found[0]["status"], headers, b"".join(each.get("body", b"") for each in found[1:])


def test_many_requests_wait_in_line_and_are_answered_together(folder, monkeypatch):
    """64 together, while 1,024 wait; the others are asked to come again."""
    app, go = create_app(Settings(folder / "model.safetensors")), threading.Event()
    works = SAFER2.recommend_flagged
    monkeypatch.setattr(
        SAFER2, "recommend_flagged", lambda *a, **o: go.wait(PATIENCE) and works(*a, **o)
    )

    async def storm():
        async with app.router.lifespan_context(app):
            asked = [asyncio.ensure_future(call(app, "/recommend", ASKED)) for _ in range(1300)]
            while sum(each.done() for each in asked) < 1300 - 1024 - 64:
                await asyncio.sleep(0.01)
            go.set()
            return await asyncio.gather(*asked), (await call(app, "/metrics"))[2].decode()

    replies, metrics = asyncio.run(storm())
    refused = [each for each in replies if each[0] == 503]
    answered = [each for each in replies if each[0] == 200]
    assert len(refused) + len(answered) == 1300
    assert 1024 < len(answered) <= 1024 + 64
    assert len({body for _, _, body in answered}) == 1
    for _, headers, body in refused:
        assert headers["retry-after"] == "1"
        assert json.loads(body)["detail"] == "the line is full, at 1024; try again in a second"
    counted = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line[0] != "#")
    batches = int(counted["safecf_batch_size_count"])
    assert float(counted["safecf_batch_size_sum"]) == len(answered)
    assert int(counted['safecf_batch_size_bucket{le="64"}']) == batches <= 1 + 1088 // 64
    assert int(counted['safecf_batch_size_bucket{le="32"}']) <= 2


def test_what_the_service_fails_of_is_not_told(folder, monkeypatch):
    def fail(*given, **options):
        raise RuntimeError("in /home/me/secret.py")

    with running(folder / "model.safetensors") as service:
        monkeypatch.setattr(SAFER2, "recommend_flagged", fail)
        reply = service.client().send("POST", "/recommend", ASKED, JSON)
        counted = service.client().get("/metrics").text
    assert reply.status == 500
    assert 'safecf_requests_total{path="/recommend",status="500"} 1' in counted
    assert reply.json["detail"] == "the service failed; its log says why"
    assert "secret" not in reply.text


def test_a_body_has_at_most_a_megabyte(folder):
    with running(folder / "model.safetensors") as service:
        client = service.client()
        padded = ASKED.ljust(2**20)
        assert client.send("POST", "/recommend", padded, JSON).status == 200
        for body in (padded + b" ", iter([padded, b" "])):
            reply = client.send("POST", "/recommend", body, JSON)
            assert reply.status == 413
            assert reply.json["detail"].startswith("the body has more than 1,048,576 bytes")
            client.close()


def test_a_request_has_thirty_seconds(folder, monkeypatch):
    """Here a second takes ten milliseconds."""
    works = asyncio.timeout
    with running(folder / "model.safetensors") as service:
        monkeypatch.setattr(asyncio, "timeout", lambda seconds: works(seconds / 100))
        with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as slow:
            slow.sendall(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
            slow.sendall(b"Content-Type: application/json\r\n\r\n{")
            reply = slow.recv(65536)
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"the request took more than 30 s" in reply


def test_tokens_are_compared_in_constant_time(folder, monkeypatch):
    compared, works = [], hmac.compare_digest
    for module in (hmac, secrets):
        monkeypatch.setattr(
            module, "compare_digest", lambda *pair: compared.append(pair) or works(*pair)
        )
    with running(folder / "model.safetensors", token="s3cret") as service:
        for given in ("s3cret", "S3cret", "s3cre", "", "s3cret2"):
            compared.clear()
            status = service.client(given).get("/about").status
            assert status == (200 if given == "s3cret" else 401)
            assert [set(pair) for pair in compared] == [{given.encode(), b"s3cret"}]
