"""`run`: listen, answer, and end gracefully."""

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from safecf.serving.app import create_app
from safecf.serving.problems import MEDIA_TYPE, problem_body
from safecf.serving.service import Service
from safecf.serving.settings import Settings

IDLE = 75  # seconds that a connection may wait for its next request
MOST_HEAD = 2**16  # bytes of a request's head
DRAIN = 0.5  # seconds in which clients are asked to close their connections before the end
# Threads of the interpreter take turns this often: the one that answers must not wait until the
# event loop has parsed many requests.
SWITCH = 0.001


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 that cuts off clients who take too long to send a request's head, or too much.

    uvicorn itself would wait for ever.
    """

    patience = 30.0  # seconds
    _clock: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock for the first request."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the clock for the next request of a connection."""
        super().on_message_begin()
        self._head = 0
        if self._clock is None:
            self._start_clock()

    def on_url(self, url: bytes) -> None:
        """Refuse paths without end."""
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuse heads without end."""
        self._grow(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the clock: the one of `Guard` takes over."""
        self._stop_clock()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        body = problem_body(400, msg)
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > MOST_HEAD:
            raise ValueError("the head of the request is too long")

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(self.patience, self.transport.close)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


class Server(uvicorn.Server):
    """uvicorn, which ends in two steps, so that no request of an open connection gets lost.

    On SIGTERM it stops to listen, and for half a second all answers ask clients to close their
    connections; then those that are still open are closed. SIGHUP reloads the files.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.interrupted = False
        self._sockets: list[socket.socket] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, also to SIGHUP."""
        await super().startup(sockets)
        self._sockets = sockets or []
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        thread = threading.Thread(target=self._service.live.refresh, kwargs={"force": True})
        thread.start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; end at once if asked again."""
        self.interrupted = sig == signal.SIGINT
        if self._service.draining:
            self.should_exit = self.force_exit = True
            return
        self._service.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to end; called ten times a second."""
        if self._service.draining and not self.should_exit:
            for server in self.servers:
                server.close()
            for each in self._sockets:
                each.close()
            await asyncio.sleep(DRAIN)
            self.should_exit = True
        return await super().on_tick(counter)


def make_server(settings: Settings) -> tuple[Server, socket.socket]:
    """Load the models, and return a server and the socket that it is to listen on.

    >>> server, listener = make_server(Settings("model.safetensors", port=0))
    >>> server.run([listener])
    """
    app = create_app(settings)
    listener = _listen(settings.host, settings.port)
    protocol = type("Patient", (Protocol,), {"patience": settings.timeout})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=int(settings.timeout) + 1,
    )
    return Server(config, app.state.service), listener


def run(settings: Settings, announce: Callable[[str], object] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer what has come and return.

    `announce` is called with the address once the models are loaded.

    >>> run(Settings("model.safetensors", port=8080))
    """
    server, listener = make_server(settings)
    host, port = listener.getsockname()[:2]
    if announce is not None:
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        server.run([listener])
    finally:
        sys.setswitchinterval(before)
        listener.close()
    if server.interrupted:
        raise KeyboardInterrupt


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an error says what to try."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as problem:
        reason = problem.strerror or problem
        raise OSError(
            f"cannot listen on {host}, port {port}: {reason}; try another port, or port=0 for any"
        ) from None
