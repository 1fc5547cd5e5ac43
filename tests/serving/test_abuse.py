"""Abuse over real connections: whatever clients do, others get right answers.

All of it stays on this machine, and is bounded in number and time.
"""

import json
import signal
import socket
from contextlib import suppress
from http.client import HTTPException

import pytest

from tests.serving.conftest import best, listed
from tests.serving.service import PATIENCE, running, together, wait_for

JSON = {"Content-Type": "application/json"}
BODY = json.dumps({"history": ["item 5", "item 6"], "k": 5}).encode()
HEAD = b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def service(folder):
    with running(folder / "model.safetensors", max_body=10_000, timeout=1.0) as found:
        yield found


@pytest.fixture(autouse=True)
def still_right(service, model):
    """After every test, the service gives the library's answer, and nothing is left over."""
    yield
    reply = service.client().send("POST", "/recommend", BODY, JSON)
    assert listed(reply) == best(model, "item 5", "item 6", k=5)
    metrics, batcher = service.service.metrics, service.service.batcher
    wait_for(lambda: not (metrics.in_flight or batcher.length))


def connect(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)


def read_all(connection):
    """Return what the service sends until it closes the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


def exchange(service, *parts):
    with connect(service) as connection:
        for part in parts:
            connection.sendall(part)
        return read_all(connection)


def problem(reply):
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    return json.loads(body)


def test_a_sender_of_100_mb_gets_its_answer_and_costs_no_memory(service):
    block = b"x" * 2**20
    with connect(service) as connection:
        connection.sendall(HEAD + b"Content-Length: 100000000\r\n\r\n")
        for _ in range(95):
            connection.sendall(block)
        connection.sendall(b"x" * (100_000_000 - 95 * len(block)))
        found = problem(read_all(connection))
    assert (found["status"], found["title"]) == (413, "Request Entity Too Large")
    assert found["detail"] == "the body has more than 10,000 bytes; send less at a time"


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHo"], ids=["nothing", "a part"])
@pytest.mark.parametrize("answered", [False, True])
def test_slow_heads_are_cut_off(service, sent, answered):
    with connect(service) as connection:
        if answered:
            connection.sendall(HEALTH)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            sent = sent or b"\r\n"  # an empty line does not keep an idle connection
        connection.sendall(sent)
        assert read_all(connection) == b""


def test_slow_bodies_are_cut_off(service):
    reply = exchange(service, HEAD + b"Content-Length: 50\r\n\r\n", b'{"history"')
    found = problem(reply)
    assert found["status"] == 408
    assert found["detail"] == "the request took more than 1 s"


NO_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS greeting
    b"hello\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET / HTTP/1.1\r\nBad Header\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X-A: " + b"b" * 70_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 20_000 + b"\r\n",
]


@pytest.mark.parametrize("sent", NO_HTTP, ids=lambda sent: repr(sent[:20]))
def test_what_is_no_http_gets_400_or_is_cut_off(service, sent):
    with connect(service) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        reply = read_all(connection)
    assert reply == b"" or reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 408"))


def test_dropped_connections_leave_nothing_behind(service):
    whole = HEAD + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    for length in range(1, len(whole) + 1, 5):
        with connect(service) as connection:
            connection.sendall(whole[:length])


def test_pipelined_requests_are_answered_in_order(service):
    one = b"GET /search?k=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    reply = exchange(service, one + one + last)
    assert reply.count(b"HTTP/1.1 200") == 3
    assert reply.rindex(b'"status": "ok"') > reply.rindex(b'{"items"')


def test_clients_that_do_not_read_are_cut_off_and_hold_up_nobody(service):
    """Answers of 40 MB for a client that reads none of them: no buffer holds them."""
    asked = b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", service.port))
        deaf.sendall(asked * 2000)

        def is_served():
            connections = set(service.server.server_state.connections)
            return deaf.getsockname() in [each.client for each in connections]

        wait_for(is_served)
        assert service.client().get("/health").status == 200
        wait_for(lambda: not is_served())


def test_a_storm_of_good_and_bad_clients_gets_right_answers_only(service, model):
    right = best(model, "item 5", "item 6", k=5)
    problems = []

    def good():
        client = service.client()
        for _ in range(30):
            reply = client.send("POST", "/recommend", BODY, JSON)
            if reply.status != 200 or listed(reply) != right:
                problems.append(reply)

    def bad():
        for number in range(10):
            with connect(service) as connection:
                connection.sendall([b"hello\r\n\r\n", HEAD, b"", HEAD + b"\r\n{"][number % 4])

    with together(*[good] * 8, *[bad] * 4):
        pass
    assert problems == []


def ask_until_the_end(client, right, answered, problems):
    """Ask until the service does not listen any more; note every wrong or missing answer."""
    while True:
        fresh = True  # a connection in the kernel's line is reset when the service stops to listen
        try:
            client.connection.connect()
        except OSError:
            return
        reply = None
        while reply is None or reply.headers.get("connection") != "close":
            try:
                reply = client.send("POST", "/recommend", BODY, JSON)
            except (OSError, HTTPException) as problem:
                if not fresh:
                    problems.append(problem)
                break
            fresh = False
            answered.append(reply.status)
            if listed(reply) != right:
                problems.append(reply)
        client.close()


def test_sigterm_under_load_loses_no_answer(folder, process, model):
    right = best(model, "item 5", "item 6", k=5)
    answered, problems = [], []
    with process(folder / "model.safetensors") as service:

        def ask():
            ask_until_the_end(service.client(), right, answered, problems)

        with together(*[ask] * 4):
            wait_for(lambda: len(answered) >= 50)
            code, rest = service.end(signal.SIGTERM)
    assert (code, rest) == (0, "")
    assert problems == []
    assert set(answered) == {200}


def test_ctrl_c_ends_the_command_with_130(folder, process):
    with process(folder / "model.safetensors") as service:
        assert service.client().get("/health").status == 200
        code, rest = service.end(signal.SIGINT)
    assert code == 130
    assert "Traceback" not in rest
