"""`Log`: what the service says on stderr, as text or as one JSON object per line."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from safecf.texts import visible

OTHERS = ("uvicorn", "asyncio")  # loggers of the libraries below


class Log:
    """Lines on stderr: of requests, if `style` is "text" or "json", and of everything else.

    >>> Log("json").line("the model is loaded", seconds=1.5)
    {"time": "2024-05-01T12:00:00Z", "level": "info", "message": "the model is loaded", ...}
    """

    def __init__(self, style: str) -> None:
        self.style = style

    def line(self, message: str, level: str = "info", **facts: Any) -> None:
        """Write a message; `facts` are further keys of the JSON object."""
        if self.style == "json":
            _write(json.dumps({"time": _now(), "level": level, "message": message, **facts}))
            return
        kind = "" if level == "info" else f"{level}: "
        _write(f"safecf: {kind}{visible(message)}")

    def request(self, path: str, **facts: Any) -> None:
        """Write a line about a request: client, method, status, ms and bytes of the answer.

        >>> log.request("/about", client="::1", method="GET", status=200, ms=1.25, bytes=812)
        2024-05-01T12:00:00Z ::1 GET /about 200 1.2 ms 812 bytes
        """
        if self.style == "json":
            _write(json.dumps({"time": _now(), "level": "info", "path": path, **facts}))
        elif self.style == "text":
            line = "{client} {method} {path} {status} {ms:.1f} ms {bytes} bytes"
            _write(f"{_now()} {line.format(path=visible(path), **facts)}")

    @contextmanager
    def others(self) -> Iterator[None]:
        """Write what the libraries below log, from warnings on."""
        handler = _Handler(self)
        loggers = [logging.getLogger(name) for name in OTHERS]
        before = [each.propagate for each in loggers]
        for each in loggers:
            each.addHandler(handler)
            each.propagate = False
        try:
            yield
        finally:
            for each, propagate in zip(loggers, before, strict=True):
                each.removeHandler(handler)
                each.propagate = propagate


class _Handler(logging.Handler):
    """Writes records of `logging` to a `Log`; a traceback is one more key, or follows the line."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        facts = {}
        if record.exc_info:
            facts["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        message = record.getMessage().strip()
        self._log.line(message, record.levelname.lower(), logger=record.name, **facts)
        if facts and self._log.style != "json":
            _write(facts["traceback"].rstrip())


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "Z"


def _write(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
