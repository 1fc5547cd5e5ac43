"""`Settings`: what is served, to whom, and within which limits."""

import os
from dataclasses import dataclass, fields
from pathlib import Path

from safecf.checks import check_integer, check_number
from safecf.errors import choose

LONGEST = 1e6  # seconds
LOGS = ("none", "text", "json")
HARDEST_LIMIT = 100_000  # of items in one request or answer


@dataclass(frozen=True)
class Settings:
    """Files to serve, where to listen, and limits; all are checked at once.

    Parameters
    ----------
    model
        File of a saved model.
    baseline
        File of another model of the same items, to compare with.
    items
        Parquet or CSV file with a row per item: its id in the column `item` or `id`, its `title`,
        and whatever else is to be shown, such as `genres`. Answers then have these facts, and the
        `popularity` of items: the share of the training users who have them.
    evaluation
        What `safecf evaluate --out` or `safecf compare --out` has written, for the tail curves.
    host, port
        Where to listen; port 0 is any free one. The default host is this machine alone.
    token
        If given, requests need the header `Authorization: Bearer TOKEN`; all but the page itself
        and the state in /health.
    max_history, max_k
        Most items of a history or list in a request, and most items of an answer.
    max_body
        Most bytes of a request's body.
    timeout
        Seconds after which a request that is not answered, read or written is cut off.
    max_batch, max_waiting
        Most requests that are answered together, and that wait in line.
    watch
        Seconds between looks at the files; a changed one is loaded. 0: only on request.
    log
        "none", or a line for every request on stderr: "text" or "json".

    >>> Settings("model.safetensors", items="titles.parquet", port=8080)
    """

    model: str | os.PathLike[str]
    baseline: str | os.PathLike[str] | None = None
    items: str | os.PathLike[str] | None = None
    evaluation: str | os.PathLike[str] | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    max_history: int = 1000
    max_k: int = 1000
    max_body: int = 2**20
    timeout: float = 30.0
    max_batch: int = 64
    max_waiting: int = 1024
    watch: float = 2.0
    log: str = "none"

    def __post_init__(self) -> None:
        least = {"port": 0, "max_history": 1, "max_k": 1, "max_body": 100}
        least |= {"max_batch": 1, "max_waiting": 1}
        default = {each.name: each.default for each in fields(self)}
        for name, low in least.items():
            check_integer(name, getattr(self, name), low, default=default[name])
        for name, high in (
            ("port", 65535),
            ("max_history", HARDEST_LIMIT),
            ("max_k", HARDEST_LIMIT),
        ):
            if getattr(self, name) > high:
                raise ValueError(f"{name}={getattr(self, name)} has to be at most {high}")
        for name in ("timeout", "watch"):
            check_number(name, getattr(self, name), default=default[name])
        for name, lowest in (("timeout", 0.001), ("watch", 0)):
            if not lowest <= getattr(self, name) <= LONGEST:
                raise ValueError(
                    f"{name}={getattr(self, name):g} has to be from {lowest:g} to {LONGEST:g} "
                    f"seconds; try {name}={default[name]:g}"
                )
        choose("log", self.log, dict.fromkeys(LOGS))
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("the token has to be of printable ASCII characters; choose another")
        if self.token is not None and (not self.token or " " in self.token):
            raise ValueError("the token is empty or has a space; choose another one")

    @property
    def files(self) -> dict[str, Path]:
        """The files that are served, by role."""
        named = {"model": self.model, "baseline": self.baseline}
        named |= {"items": self.items, "evaluation": self.evaluation}
        return {role: Path(path) for role, path in named.items() if path is not None}
