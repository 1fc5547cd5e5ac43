"""`run`: listen, answer, and end gracefully."""

import asyncio
import gc
import os
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
from safecf.serving.log import Log
from safecf.serving.problems import MEDIA_TYPE, problem_body
from safecf.serving.service import Service
from safecf.serving.settings import Settings

IDLE = 75  # seconds that a connection may wait for its next request
MOST_HEAD = 2**16  # bytes of a request's head
BACKLOG = 2048  # connections that wait to be taken
DRAIN = 0.5  # seconds in which clients are asked to close their connections before the end
# Threads of the interpreter take turns this often: the one that answers must not wait until the
# event loop has parsed many requests.
SWITCH = 0.001
COLLECT = 10_000  # new objects between garbage collections; requests leave hardly any garbage


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 that cuts off clients who send a request's head, or read answers, too slowly.

    uvicorn itself would wait for ever.
    """

    patience = 30.0  # seconds
    _clock: asyncio.TimerHandle | None = None  # runs while a head is awaited
    _deaf: asyncio.TimerHandle | None = None  # runs while the client does not read
    _answered: Any = None  # the request that is answered now
    _head = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock for the first request."""
        super().connection_made(transport)
        # `pause_writing` is then called for every answer that the client does not read at once
        transport.set_write_buffer_limits(0)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks, and forget the requests that wait for their turn."""
        self._stop_clock()
        self._hears()
        self.pipeline.clear()
        if self._answered is not None:  # uvicorn looks at the last request alone
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        """Wait for the client to read; a closed connection waits, too."""
        super().pause_writing()
        self._hears()
        self._deaf = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._hears()

    def data_received(self, data: bytes) -> None:
        """Start the clock for the next request, and for empty lines before it."""
        if self._clock is None and (self.cycle is None or self.cycle.response_complete):
            self._start_clock()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin to count the bytes of a head."""
        super().on_message_begin()
        self._head = 0

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
        self._clock = self.loop.call_later(self.patience, self.transport.abort)

    def _hears(self) -> None:
        if self._deaf is not None:
            self._deaf.cancel()
            self._deaf = None

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
            loop.add_signal_handler(signal.SIGHUP, self._service.live.reload)

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


def make_server(
    settings: Settings, say: Callable[[str], object] | None = None
) -> tuple[Server, socket.socket]:
    """Load the models, and return a server and the socket that it is to listen on.

    >>> server, listener = make_server(Settings("model.safetensors", port=0))
    >>> server.run([listener])
    """
    listener = _bind(settings.host, settings.port)  # first, as loading may take long
    try:
        app = create_app(settings, say)
    except BaseException:
        listener.close()
        raise
    listener.listen(BACKLOG)
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


def run(settings: Settings, say: Callable[[str], object] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer what has come and return.

    `say` is called with what is loaded, and with the address once all is.

    >>> run(Settings("model.safetensors", port=8080), print)
    """
    server, listener = make_server(settings, say)
    host, port = listener.getsockname()[:2]
    if say is not None:
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        say(f"serving {settings.model} at {address} (Ctrl-C ends it)")
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(COLLECT, *thresholds[1:])
    try:
        with Log(settings.log).others():
            server.run([listener])
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        listener.close()
    if server.interrupted:
        raise KeyboardInterrupt


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; an error says what to try."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # elsewhere it lets others take the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        reason = problem.strerror or problem
        remedy = "try another port, or port=0 for any"
        if isinstance(problem, socket.gaierror):
            remedy = "try an address of this machine, such as 127.0.0.1"
        raise OSError(f"cannot listen on {host}, port {port}: {reason}; {remedy}") from None
    return listener
