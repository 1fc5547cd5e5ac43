"""`Settings`: what is served, to whom, and within which limits."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safecf.checks import check_integer, check_number
from safecf.errors import choose, shown

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions

LONGEST = 1e6  # seconds
LOGS = ("none", "text", "json")
HARDEST_LIMIT = 100_000  # of items in one request or answer
FILES = ("model", "baseline", "items", "evaluation")
LOCAL = ("127.0.0.1", "::1", "localhost")  # this machine alone

PathLike = str | os.PathLike[str]


def _says(text: str) -> dict[str, Any]:
    """Return the metadata of a field: its help, which the command line shows."""
    return {"help": text}


@dataclass(frozen=True)
class Settings:
    """Files to serve, where to listen, and limits; all are checked at once.

    `data` has what users have, so that known users can be asked for without it: an `Interactions`,
    or a function that reads one, which every reload calls again. The metadata of the other fields
    says what they are; `safecf serve --help` shows it.

    >>> Settings("model.safetensors", items="titles.parquet", port=8080)
    >>> Settings("model.safetensors", data=Interactions.from_parquet("clicks.parquet"))
    """

    model: PathLike = field(metadata=_says("File of a saved model."))
    baseline: PathLike | None = field(
        default=None, metadata=_says("File of another model, to compare with.")
    )
    items: PathLike | None = field(
        default=None,
        metadata=_says(
            "Parquet, CSV or TSV file of the items: item (or id), title, and more such as genres."
        ),
    )
    evaluation: PathLike | None = field(
        default=None, metadata=_says("What safecf compare --out has written, for the tail curves.")
    )
    data: "Interactions | Callable[[], Interactions] | None" = None
    device: str | None = field(
        default=None,
        metadata=_says(
            "Where models compute: cpu, cuda, cuda:1 and so on, or auto, the GPU if there is one; "
            "by default as the model says."
        ),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=_says("Address to listen on; 0.0.0.0 is every one of this machine."),
    )
    port: int = field(default=8000, metadata=_says("Port to listen on; 0 is any free one."))
    allow_host: Sequence[str] = field(
        default=(),
        metadata=_says(
            "Name in the header Host by which clients or a proxy may call the service; may be "
            "repeated. On 127.0.0.1 all but local names are refused; elsewhere none is, unless "
            "this is given."
        ),
    )
    token: str | None = field(
        default=None,
        metadata=_says(
            "Requests need the header Authorization: Bearer TOKEN. Better given as the variable "
            "SAFECF_TOKEN: other users of the machine see command lines."
        ),
    )
    max_history: int = field(
        default=1000, metadata=_says("Most items of a history, or of a list in a request.")
    )
    max_k: int = field(default=1000, metadata=_says("Most items of an answer."))
    max_body: int = field(default=2**20, metadata=_says("Most bytes of a request's body."))
    max_batch: int = field(default=64, metadata=_says("Most requests that are answered together."))
    max_waiting: int = field(
        default=1024, metadata=_says("Most requests that wait in line; others get status 503.")
    )
    timeout: float = field(
        default=30.0,
        metadata=_says(
            "Seconds after which a client that does not send or read, or a request, is cut off."
        ),
    )
    watch: float = field(
        default=2.0,
        metadata=_says(
            "Seconds between looks at the files; changed ones are loaded. 0: on SIGHUP and POST "
            "/reload only."
        ),
    )
    log: str = field(
        default="none", metadata=_says("A line per request on stderr: none, text or json.")
    )

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
        if isinstance(self.allow_host, str):
            raise TypeError(
                f"allow_host={shown(self.allow_host)} has to be a list; try a list of it"
            )
        for name in self.allow_host:
            if not name or set(name) & set("/:@ "):
                raise ValueError(
                    f"allow_host has {name!r}, which is no name of a host; give the name alone, "
                    "such as recommend.example.org"
                )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("the token has to be of printable ASCII characters; choose another")
        if self.token is not None and (not self.token or " " in self.token):
            raise ValueError("the token is empty or has a space; choose another one")

    @property
    def files(self) -> dict[str, Path]:
        """The files that are served, by role."""
        named = {role: getattr(self, role) for role in FILES}
        return {role: Path(path) for role, path in named.items() if path is not None}

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the service."""
        return self.host in LOCAL or self.host.startswith("127.")
