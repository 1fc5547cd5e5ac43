"""`Answers`: recommendations by the original ids, part by part."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from safecf.checks import check_type
from safecf.data.matrices.ids import asked_ids
from safecf.data.matrices.interactions import Interactions
from safecf.models.by_ids import Histories, Names, check_named
from safecf.models.files import checksum
from safecf.models.queries import ROWS, Indices, check_count, slices
from safecf.models.ranking import Found

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender

PAIRS = 2**21  # users x N that are answered at a time


class Source(NamedTuple):
    """Some of the users, and where they are taken from."""

    members: NDArray[np.bool_]
    numbers: Indices  # rows in the model, if nothing is recalculated
    histories: Histories | None
    rows: Indices  # rows in the histories, -1 for none
    recalculate: bool


@dataclass(frozen=True)
class Answers:
    """Recommendations for users by their ids: all ids are looked up, then parts are answered.

    >>> answers = make_answers(model, user_items=interactions)
    >>> for start, stop in answers.slices():
    ...     write(answers.part(start, stop))
    """

    model: "Recommender"
    users: Any  # the ids, in Arrow
    sources: list[Source]
    options: dict[str, Any]  # of `recommend_flagged`
    part_size: int

    @property
    def schema(self) -> pa.Schema:
        """The columns of the tables."""
        item = Names.of_items(self.model).to_arrow().type
        types = {"user": self.users.type, "item": item, "score": pa.float32(), "rank": pa.int32()}
        return pa.schema({**types, "popular": pa.bool_()})

    def slices(self) -> Iterator[tuple[int, int]]:
        """Yield the first user of each part, and the first one behind it."""
        return slices(len(self.users), self.part_size)

    def part(self, start: int, stop: int) -> pa.Table:
        """Answer these users."""
        return self._table(start, self._found(slice(start, stop)))

    def table(self) -> pa.Table:
        """Answer all users."""
        parts = (self.part(start, stop) for start, stop in self.slices())
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def fingerprint(self) -> str:
        """Return the SHA-256 of all that the answers depend on: the same one, the same answers."""
        options = {name: np.asarray(value).tolist() for name, value in self.options.items()}
        made_by = [version("safecf"), type(self.model).__name__, repr(self.model.get_params())]
        fitted, arrays = self.model._pack()
        for at, buffer in enumerate(self.users.buffers()):
            arrays[f"users {at}"] = np.frombuffer(buffer or b"", np.uint8)
        for at, source in enumerate(self.sources):
            given: dict[str, NDArray[Any] | None] = {
                "members": source.members,
                "numbers": source.numbers,
                "rows": source.rows,
            }
            if source.histories is not None:
                matrix, columns = source.histories.matrix, source.histories.columns
                given |= {"indptr": matrix.indptr, "indices": matrix.indices, "columns": columns}
                given["weights"] = matrix.weights
            arrays |= {f"{at} {name}": each for name, each in given.items() if each is not None}
        contiguous = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
        head = [*made_by, fitted.get("resolved"), options, self.part_size]
        return checksum(json.dumps(head), contiguous)

    def _table(self, start: int, found: Found) -> pa.Table:
        there = found.ids >= 0
        number, rank = np.nonzero(there)
        items = Names.of_items(self.model).to_arrow()
        columns = [
            self.users.take(pa.array(start + number)),
            items.take(pa.array(found.ids[there])),
            pa.array(found.scores[there]),
            pa.array((rank + 1).astype(np.int32)),
            pa.array(found.popular[number]),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _found(self, part: slice) -> Found:
        """Answer a part of the users, those from each source together."""
        answers: list[tuple[Indices, Found]] = []
        for members, numbers, histories, rows, recalculate in self.sources:
            at = np.flatnonzero(members[part])
            if at.size or not (members.size or answers):
                taken = None if histories is None else histories.take(rows[part][at])
                answers.append((at, self._recommend(numbers[part][at], taken, recalculate)))
        if len(answers) == 1:
            return answers[0][1]
        size, width = part.stop - part.start, answers[0][1].ids.shape[1]
        whole = Found(
            np.empty((size, width), np.int32),
            np.empty((size, width), np.float32),
            np.empty(size, bool),
        )
        for at, found in answers:
            for total, some in zip(whole, found, strict=True):
                total[at] = some
        return whole

    def _recommend(self, numbers: Indices, taken: Any, recalculate: bool) -> Found:
        return self.model.recommend_flagged(
            numbers, taken, recalculate_user=recalculate, **self.options
        )


class Places(NamedTuple):
    """Where the asked users are: the row of each, -1 if it is not there."""

    stored: Indices  # in the model
    own: Indices  # in user_items
    given: Indices  # in the histories

    @property
    def is_given(self) -> NDArray[np.bool_]:
        """Users who are computed from the histories."""
        return self.given >= 0

    @property
    def is_stored(self) -> NDArray[np.bool_]:
        """Users who are taken from the model."""
        return ~self.is_given & (self.stored >= 0)

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Users who are computed from user_items, or cold."""
        return ~self.is_given & (self.stored < 0)


def make_answers(
    model: "Recommender",
    users: ArrayLike | None = None,
    N: int = 10,
    *,
    user_items: Interactions | None = None,
    filter_already_liked_items: bool = True,
    recalculate_user: bool = False,
    filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None,
    histories: Interactions | None = None,
    cold: bool = False,
) -> Answers:
    """Look up all ids; the arguments are those of `Recommender.recommend_frame`, and one more.

    A user whom the model does not know is a KeyError, unless
    `cold` is true: such users are computed from `user_items`, and get the most popular items if
    they are not in there.
    """
    num_items = model.sizes()[1]
    part_size = max(1, min(ROWS, PAIRS // check_count(N, num_items)))
    lists = ("items", items), ("filter_items", filter_items)
    only, without = select(Names.of_items(model), num_items, *lists)
    options = {
        "N": N,
        "filter_already_liked_items": filter_already_liked_items,
        "filter_items": without,
        "items": only,
    }
    needed = filter_already_liked_items or recalculate_user or model.needs_histories
    if histories is not None:
        remedy = "pass an Interactions of what these users have"
        check_type("histories", histories, Interactions, remedy)
        check_named(model, histories, users_too=False)
    own = None
    if user_items is not None and (needed or cold):
        _check_own(model, user_items)
        check_named(model, user_items, users_too=not recalculate_user)
        own = _users_of(model, "history", user_items)
    known, given = Names.of_users(model), _users_of(model, "given", histories)
    recalculated = own if recalculate_user and own is not None else known
    names = given or recalculated
    asked = names.array if users is None else asked_ids(users)

    nowhere = np.full(asked.size, -1)
    places = Places(
        nowhere if recalculate_user else known.find(asked),
        nowhere if own is None else own.find(asked),
        nowhere if given is None else given.find(asked),
    )
    lacking = ~places.is_given & (recalculate_user | (places.stored >= 0))
    if needed and own is None and (lacking.any() or not asked.size):
        _check_own(model, user_items)
    unknown = places.is_new & ((places.own < 0) | (not recalculate_user))
    if unknown.any() and not cold:
        recalculated.rows(asked[unknown], "user")
    missing = places.is_stored & (places.own < 0)
    if needed and own is not None and missing.any():
        own.rows(asked[missing], "user (in user_items)")
    place = names.find(asked)
    ids = names.to_arrow().take(pa.array(place)) if (place >= 0).all() else _in_arrow(asked, known)
    sources = _sources(model, places, user_items if own else None, histories, needed)
    return Answers(model, ids, sources, options, part_size)


def _sources(
    model: "Recommender",
    places: Places,
    user_items: Interactions | None,
    histories: Interactions | None,
    needed: bool,
) -> list[Source]:
    """Return where users are taken from; the histories of stored ones only if they are needed."""
    own = None
    if user_items is not None:
        own = Histories.of_users(model, user_items, places.own[~places.is_given])
    elif places.is_new.any():
        own = Histories.none(model.sizes()[1])
    found = [
        Source(places.is_stored, places.stored, own if needed else None, places.own, False),
        Source(places.is_new, places.stored, own, places.own, True),
    ]
    if histories is not None:
        now = Histories.of_users(model, histories, places.given[places.is_given])
        found.append(Source(places.is_given, places.stored, now, places.given, True))
    return found


def select(
    names: Names,
    size: int,
    only: tuple[str, ArrayLike | None],
    without: tuple[str, ArrayLike | None],
) -> tuple[Indices | None, Indices | None]:
    """Return the rows to choose from and those to leave out; rows without an id are left out.

    Lists have the names of their arguments. Unknown ids are left out with a warning; if there is
    no known one to choose from, that is a KeyError.
    """
    (its_name, allowed), (other_name, blocked) = only, without
    chosen = None if allowed is None else names.known_rows(allowed, its_name)
    banned = None if blocked is None else names.known_rows(blocked, other_name, or_none=True)
    if chosen is None and names.array.size < size:
        unnamed = np.arange(names.array.size, size)
        banned = unnamed if banned is None else np.append(banned, unnamed)
    return chosen, banned


def _check_own(model: "Recommender", user_items: Interactions | None) -> None:
    """Raise if `user_items` is not what the users already have."""
    if not isinstance(user_items, Interactions):
        hint = "" if model.needs_histories else ", or filter_already_liked_items=False"
        raise TypeError(
            f"user_items is of type {type(user_items).__name__}, not Interactions; pass what "
            f"the users already have{hint}"
        )


def _users_of(model: "Recommender", key: str, given: Interactions | None) -> Names | None:
    return None if given is None else Names.make(model, key, given.user_ids, given.num_users)


def _in_arrow(asked: NDArray[Any], known: Names) -> Any:
    """Convert ids of users, some of whom are unknown; raise if they are not of the known type."""
    kind = "strings" if known.array.dtype == object else "integers"
    fits = known.is_of_type(asked)
    try:
        found = pa.array(asked.tolist(), type=known.to_arrow().type) if fits else None
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        found = None
    if found is None or found.null_count:
        raise TypeError(
            f"users holds ids that are no {kind}, as those of the model are; convert them"
        )
    return found
