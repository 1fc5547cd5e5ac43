"""`Guard`: what every request passes: host, origin, token, size, time, counts and log."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from safecf.serving.problems import MEDIA_TYPE, problem_body
from safecf.serving.service import Service
from safecf.serving.settings import LOCAL, Settings
from safecf.texts import visible

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# the page has no data in it, and /health tells strangers no more than whether it answers
OPEN = {"/", "/page.css", "/page.js", "/tail.js", "/icon.svg", "/health"}
SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
LINGER = 2.0  # seconds in which the rest of a refused body is read, so that the answer arrives
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Wraps the application."""

    def __init__(self, app: App, service: Service) -> None:
        self.app, self.service = app, service
        token = service.settings.token
        self._token = None if token is None else token.encode()
        self._hosts = served_hosts(service.settings)
        self._origins = frozenset(map(str.lower, service.settings.allow_host))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await _Exchange(self, scope, receive, send).run()

    def allowed(self, given: bytes) -> bool:
        """Whether the header is that of the token, compared in constant time."""
        scheme, _, token = given.partition(b" ")
        right = hmac.compare_digest(token.strip(), self._token or b"")
        return self._token is None or (right and scheme.lower() == b"bearer")

    def serves(self, host: bytes) -> bool:
        """Whether the service is called by its name: a page may have another name point to it."""
        return self._hosts is None or not host or host_name(host) in self._hosts

    def trusts(self, origin: bytes, host: bytes) -> bool:
        """Whether the page that asks is the service's own; what is no browser has no origin."""
        authority = origin.lower().partition(b"://")[2]
        return not origin or authority == host.lower() or host_name(authority) in self._origins


def served_hosts(settings: Settings) -> frozenset[str] | None:
    """Return the names by which the service may be called; None for any."""
    if "*" in settings.allow_host or not (settings.is_local or settings.allow_host):
        return None
    return frozenset(each.lower() for each in (*LOCAL, settings.host, *settings.allow_host))


def host_name(authority: bytes) -> str:
    """Return the host of a header without its port.

    >>> host_name(b"[::1]:8000"), host_name(b"Localhost:8000")
    ('::1', 'localhost')
    """
    text = authority.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, guard: Guard, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self._guard, self._scope = guard, scope
        self._receive, self._send = receive, send
        self._status = self._size = self._sent = 0
        self._refused = False

    async def run(self) -> None:
        guard, path = self._guard, self._scope["path"]
        start = time.perf_counter()
        guard.service.metrics.in_flight += 1
        try:
            async with asyncio.timeout(guard.service.settings.timeout):
                await self._answer(path)
        except TimeoutError:
            seconds = guard.service.settings.timeout
            await self._refuse(408, f"the request took more than {seconds:g} s")
        except Exception:  # the server writes the traceback into the log
            await self._fail()
            raise
        finally:
            guard.service.metrics.in_flight -= 1
            seconds = time.perf_counter() - start
            guard.service.metrics.request(path, self._status, seconds)
            guard.service.log.request(
                path,
                client=(self._scope.get("client") or ("",))[0],
                method=self._scope["method"],
                status=self._status,
                ms=round(1000 * seconds, 3),
                bytes=0 if self._scope["method"] == "HEAD" else self._sent,
            )

    async def _answer(self, path: str) -> None:
        guard, headers = self._guard, dict(self._scope["headers"])
        host, method = headers.get(b"host", b""), self._scope["method"]
        if not guard.serves(host):
            named = visible(host_name(host))
            await self._refuse(421, f"{named} is no name of this service; see --allow-host")
            return
        if method not in SAFE and not guard.trusts(headers.get(b"origin", b""), host):
            said = "a page of another site may not ask; see --allow-host for the names of a proxy"
            await self._refuse(403, said)
            return
        self._scope["authorized"] = guard.allowed(headers.get(b"authorization", b""))
        if path not in OPEN and not self._scope["authorized"]:
            said = "give the service's token as the header Authorization: Bearer TOKEN"
            await self._refuse(401, said, [(b"www-authenticate", b"Bearer")])
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > guard.service.settings.max_body:
            await self._refuse_size()
            return
        # the server leaves the body of an answer to HEAD out
        asked = "GET" if method == "HEAD" else method
        await guard.app({**self._scope, "method": asked}, self._bounded, self._watched)

    async def _bounded(self) -> Message:
        """Receive a part of the body; refuse it, and call it the end, if it has become too long."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._guard.service.settings.max_body:
                await self._refuse_size()
                return {"type": "http.disconnect"}
        return message

    async def _watched(self, message: Message) -> None:
        """Send, with the headers of all answers; nothing after a refusal."""
        if self._refused:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), *HEADERS]
            if self._guard.service.draining:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        self._sent += len(message.get("body", b""))
        await self._send(message)

    async def _fail(self) -> None:
        """Send a problem of the service itself, unless an answer has begun already."""
        if self._status:
            return
        body = problem_body(500, "the service failed; its log says why")
        headers = [(b"content-type", MEDIA_TYPE.encode())]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._watched({"type": "http.response.start", "status": 500, "headers": headers})
        await self._watched({"type": "http.response.body", "body": body})

    async def _refuse_size(self) -> None:
        most = self._guard.service.settings.max_body
        await self._refuse(413, f"the body has more than {most:,} bytes; send less at a time")

    async def _refuse(
        self, status: int, detail: str, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Send a problem and close the connection, unless an answer has begun already.

        A client that still sends is read for a while: closing at once could take the answer away.
        """
        if self._status:
            return
        self._status, self._refused = status, True
        body = problem_body(status, detail)
        self._sent = len(body)
        length = str(len(body)).encode()
        own = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", length)]
        own += [(b"connection", b"close"), *(headers or ())]
        own += HEADERS
        await self._send({"type": "http.response.start", "status": status, "headers": own})
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        try:
            async with asyncio.timeout(LINGER):
                while (await self._receive()).get("more_body"):
                    pass
        except TimeoutError:
            pass
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
