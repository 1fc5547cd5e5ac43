"""What the engine can be asked, and what it answers; nothing here knows of HTTP."""

from dataclasses import dataclass

Id = int | str  # an original id of a user or an item


class UnknownIdError(LookupError):
    """The model does not know a user or an item."""


@dataclass(frozen=True)
class Recommend:
    """The k best items of a known user, or of anybody with this history.

    An item that occurs twice in the history counts once; `weights` of its occurrences are added.

    >>> Recommend(history=("alien", "dune"), k=20)
    """

    user: Id | None = None
    history: tuple[Id, ...] | None = None
    weights: tuple[float, ...] | None = None
    k: int = 10
    exclude: tuple[Id, ...] = ()
    items: tuple[Id, ...] | None = None
    keep_history: bool = False
    model: str = "model"


@dataclass(frozen=True)
class Similar:
    """The k items most like one item, which is not among them."""

    item: Id
    k: int = 10
    model: str = "model"


@dataclass(frozen=True)
class Explain:
    """The k items of a history, or of what a known user has, that add most to a score."""

    item: Id
    user: Id | None = None
    history: tuple[Id, ...] | None = None
    weights: tuple[float, ...] | None = None
    k: int = 10
    model: str = "model"


Request = Recommend | Similar | Explain


@dataclass(frozen=True)
class Ranked:
    """Items and their scores, best first.

    `popular`: nothing is known of the user, and these are the most popular items. `unknown` are
    the items of the request that the model does not know; they were left out. `history_removed`:
    what the user has was left out.
    """

    ids: list[Id]
    scores: list[float]
    popular: bool = False
    unknown: tuple[Id, ...] = ()
    history_removed: bool = True


@dataclass(frozen=True)
class Explained:
    """score = sum of the contributions of all items of the history, of which these are the most."""

    item: Id
    score: float
    ids: list[Id]
    contributions: list[float]
    unknown: tuple[Id, ...] = ()


Answer = Ranked | Explained
