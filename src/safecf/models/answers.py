"""`Answers`: recommendations by the original ids, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from safecf.checks import check_type
from safecf.data.matrices.ids import asked_ids
from safecf.data.matrices.interactions import Interactions
from safecf.models.by_ids import Histories, Names, check_named
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

    >>> for done, popular, table in make_answers(model, user_items=interactions).parts():
    ...     write(table)
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

    def parts(self) -> Iterator[tuple[int, int, pa.Table]]:
        """Answer some users at a time: yield how many are done, how many popular, and a table."""
        for start, stop in slices(len(self.users), self.part_size):
            found = self._found(slice(start, stop))
            yield stop, int(np.count_nonzero(found.popular)), self._table(start, found)

    def table(self) -> pa.Table:
        """Answer all users."""
        return pa.concat_tables([self.schema.empty_table(), *(part for _, _, part in self.parts())])

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
        answers = []
        for members, numbers, histories, rows, recalculate in self.sources:
            at = np.flatnonzero(members[part])
            if at.size or not members.size:
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
    """Look up all ids; the arguments are those of `Recommender.recommend_frame`, and two more.

    Users in `histories` are computed from it, whatever the model and `user_items` know of them;
    they are the default of `users`. A user whom the model does not know is a KeyError, unless
    `cold` is true: such users are computed from `user_items`, and get the most popular items if
    they are not in there. If no user at all is known, that is still an error.
    """
    num_items = model.sizes()[1]
    part_size = max(1, min(ROWS, PAIRS // check_count(N, num_items)))
    only, without = select(Names.of_items(model), num_items, items, filter_items)
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
    own = _own_users(model, user_items, needed and histories is None, needed or cold)
    if own is not None and user_items is not None:
        check_named(model, user_items, users_too=not recalculate_user)
    known, given = Names.of_users(model), _users_of(model, "given", histories)
    names = given or (own if recalculate_user and own is not None else known)
    asked = names.array if users is None else asked_ids(users)

    nowhere = np.full(asked.size, -1)
    stored = nowhere if recalculate_user else known.find(asked)
    in_own = nowhere if own is None else own.find(asked)
    in_given = nowhere if given is None else given.find(asked)
    rest, is_stored = in_given < 0, (in_given < 0) & (stored >= 0)
    if needed and own is None and rest.any():
        _own_users(model, user_items, True, True)
    unknown = rest & ~is_stored & (in_own < 0 if cold or recalculate_user else True)
    if unknown.any() and (not cold or unknown.all()):
        (own if recalculate_user and own is not None else known).rows(asked[unknown], "user")
    missing = is_stored & (in_own < 0)
    if needed and own is not None and missing.any():
        own.rows(asked[missing], "user (in user_items)")

    taken = None
    if own is not None and user_items is not None:
        taken = Histories.of_users(model, user_items, in_own[rest])
    elif (rest & ~is_stored).any():
        taken = Histories.none(num_items)
    sources = [
        Source(is_stored, stored, taken if needed else None, in_own, False),
        Source(rest & ~is_stored, stored, taken, in_own, True),
    ]
    if histories is not None:
        found = Histories.of_users(model, histories, in_given[~rest])
        sources.append(Source(~rest, stored, found, in_given, True))
    place = names.find(asked)
    ids = names.to_arrow().take(pa.array(place)) if (place >= 0).all() else _in_arrow(asked, known)
    return Answers(model, ids, sources, options, part_size)


def select(
    names: Names, size: int, only: ArrayLike | None, without: ArrayLike | None
) -> tuple[Indices | None, Indices | None]:
    """Return the rows to choose from and those to leave out; rows without an id are left out."""
    chosen, banned = (None if ids is None else names.rows(ids) for ids in (only, without))
    if chosen is None and names.array.size < size:
        unnamed = np.arange(names.array.size, size)
        banned = unnamed if banned is None else np.append(banned, unnamed)
    return chosen, banned


def _own_users(
    model: "Recommender", user_items: Interactions | None, needed: bool, used: bool
) -> Names | None:
    """Return the users of `user_items`, if it is used; raise if it is needed and not there."""
    if (needed or (used and user_items is not None)) and not isinstance(user_items, Interactions):
        hint = "" if model.needs_histories else ", or filter_already_liked_items=False"
        raise TypeError(
            f"user_items is of type {type(user_items).__name__}, not Interactions; pass what "
            f"the users already have{hint}"
        )
    return _users_of(model, "history", user_items) if used else None


def _users_of(model: "Recommender", key: str, given: Interactions | None) -> Names | None:
    return None if given is None else Names.make(model, key, given.user_ids, given.num_users)


def _in_arrow(asked: NDArray[Any], known: Names) -> Any:
    """Convert ids of users, some of which are unknown, to the type of the known ones."""
    kind = "strings" if known.array.dtype == object else "integers"
    try:
        found = pa.array(asked.tolist(), type=known.to_arrow().type)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        found = None
    if found is None or found.null_count:
        raise TypeError(
            f"users holds ids that are no {kind}, as those of the model are; convert them"
        )
    return found
