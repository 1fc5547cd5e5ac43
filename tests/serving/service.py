"""A service in a thread of the test, and requests to it over a real connection."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from safecf.serving.server import make_server
from safecf.serving.settings import Settings

PATIENCE = 60.0  # seconds that a busy machine may take


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def together(*functions):
    """Run functions in threads beside the block, and wait until all have ended."""
    threads = [threading.Thread(target=each, daemon=True) for each in functions]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """A client with one connection, which it opens again when the service has closed it."""

    def __init__(self, port, token=None):
        self.port = port
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def send(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, {**self.headers, **(headers or {})})
        found = self.connection.getresponse()
        reply = Reply(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        assert reply.headers["x-content-type-options"] == "nosniff"  # of every answer
        assert reply.headers["cache-control"] == "no-store"
        return reply

    def get(self, path, **headers):
        return self.send("GET", path, headers=headers)

    def post(self, path, record=None, **more):
        body = json.dumps(more if record is None else record)
        return self.send("POST", path, body, {"Content-Type": "application/json"})

    def close(self):
        self.connection.close()


@dataclass
class Running:
    port: int
    server: object
    service: object
    clients: list = field(default_factory=list)

    def client(self, token=None):
        self.clients.append(Client(self.port, token))
        return self.clients[-1]


@contextmanager
def running(*files, **options):
    """Serve in a thread; at the end the service ends as on SIGTERM."""
    given = {"port": 0, "watch": 0} | options
    server, listener = make_server(Settings(*files, **given))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    wait_for(lambda: server.started or not thread.is_alive())
    assert server.started
    found = Running(listener.getsockname()[1], server, server.config.app.state.service)
    try:
        yield found
    finally:
        for client in found.clients:
            client.close()
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
    assert not thread.is_alive()


@dataclass
class Process(Running):
    """A service in a process of its own; `server` is the process, `said` its first lines."""

    said: list = field(default_factory=list)

    @property
    def pid(self):
        return self.server.pid

    def end(self, number=signal.SIGTERM):
        """Send a signal; return the exit code, and what is left of stderr."""
        self.server.send_signal(number)
        _, rest = self.server.communicate(timeout=PATIENCE)
        return self.server.returncode, rest


@contextmanager
def separate(*arguments):
    """Run `safecf serve` in a process of its own, on any free port."""
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", start + "from safecf.cli import main; main()", "serve"]
    process = subprocess.Popen(
        [*command, *map(str, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = None
    try:
        said = []
        while (line := process.stderr.readline()) and "http://" not in line:
            said.append(line)
        assert "http://127.0.0.1:" in line, "".join(said)
        found = Process(int(line.split("http://127.0.0.1:")[1].split()[0]), process, None)
        found.said = [*said, line]
        yield found
    finally:
        for client in found.clients if found else ():
            client.close()
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE)
