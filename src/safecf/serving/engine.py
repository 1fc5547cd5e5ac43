"""`Engine`: a fitted model that answers batches of requests by original ids."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices.interactions import Interactions
from safecf.errors import shown
from safecf.models import Recommender
from safecf.models.catalogue import ExactTail, SmoothedTail
from safecf.models.popularity import resized
from safecf.serving.lookup import History, Known, Lookup
from safecf.serving.requests import (
    Answer,
    Explain,
    Explained,
    Id,
    Ranked,
    Recommend,
    Request,
    Similar,
    UnknownIdError,
)

START = "start the service with the data, as in safecf serve model.safetensors clicks.parquet"


class Engine:
    """A model and its ids. Answers have the bits of the model's own, whatever else is in the batch.

    With the `data`, known users need no history: what they have is removed, and explains scores.

    >>> Engine(safecf.load("model.safetensors")).answer([Recommend(history=("alien",), k=20)])
    [Ranked(ids=['aliens', ...], ...)]
    """

    def __init__(self, model: Recommender, data: Interactions | None = None) -> None:
        users, items = model.sizes()
        self.model = model
        self.users = Lookup(model.user_ids, users)
        self.items = Lookup(model.item_ids, items)
        self.num_items = items
        # items that a partial fit has added without an id cannot be named, nor recommended
        self._unnamed = np.arange(len(self.items), items) if len(self.items) < items else None
        self.popularity = resized(model.item_popularity, items)
        self.known = None if data is None else Known(model, data, self.users)

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    @property
    def kind_of_users(self) -> str | None:
        """What the ids of users are, "integers" or "strings"; None if no histories are known."""
        return None if self.known is None else self.users.kind

    @property
    def tail(self) -> float | None:
        """The share of worst-off users that training looked after, if it did."""
        if isinstance(self.model, SmoothedTail | ExactTail):
            return self.model.tail
        return None

    def warm(self) -> None:
        """Build what the first answers need, and raise if the model cannot give any."""
        first = (self.items.ids[0],)
        for answer in self.answer([Recommend(history=first, k=1), Similar(first[0], k=1)]):
            if isinstance(answer, Exception):
                raise answer

    def answer(self, requests: Sequence[Request]) -> list[Answer | Exception]:
        """Return the answer to every request; one that cannot be answered gets its error."""
        answers: list[Answer | Exception | None] = [None] * len(requests)
        together: dict[object, list[tuple[int, _Query]]] = defaultdict(list)
        for place, request in enumerate(requests):
            try:
                if isinstance(request, Recommend):
                    query = self._query(request)
                    together[query.call].append((place, query))
                elif isinstance(request, Similar):
                    answers[place] = self._similar(request)
                else:
                    answers[place] = self._explain(request)
            except Exception as problem:  # of this request alone
                answers[place] = problem
        for group in together.values():
            places, queries = zip(*group, strict=True)
            for place, found in zip(places, self._recommend(queries), strict=True):
                answers[place] = found
        return [found for found in answers if found is not None]

    def _query(self, request: Recommend) -> "_Query":
        """Find the ids of a request."""
        excluded, unknown = self._found(request.exclude)
        only = None
        if request.items is not None:
            chosen, others = self._found(request.items)
            if others and not chosen:
                raise self._unknown_items("items", others)
            only = tuple(sorted(chosen - excluded))
            excluded, unknown = set(), (*others, *unknown)
        _check_one_of(request)
        if request.history is None:
            user, history = self._user(request.user)
            if user is None and history is None:
                raise ValueError(
                    f"{self.name} stores nothing of the users; give a history instead of a user, "
                    f"or {START}"
                )
        else:
            user = None
            history, others = self._history(request.history, request.weights)
            unknown = (*others, *unknown)
        removed = history is not None and not request.keep_history
        history = history or {}
        if removed:
            excluded -= history.keys()
        named = tuple(dict.fromkeys(unknown))
        return _Query(request.k, excluded, only, named, user, history, removed)

    def _found(self, ids: Sequence[Id]) -> tuple[set[int], tuple[Id, ...]]:
        """Return the indices of items, and the unknown ids."""
        places = self.items.find(ids)
        unknown = (name for name, place in zip(ids, places, strict=True) if place is None)
        return {place for place in places if place is not None}, tuple(unknown)

    def _unknown_items(self, what: str, unknown: Sequence[Id]) -> UnknownIdError:
        return UnknownIdError(
            f"no item of {what} is known, such as {shown(unknown[0])}: {self.items.hint(unknown)}"
        )

    def _user(self, user: Any) -> tuple[int | None, History | None]:
        """Return where the model has stored a user, if it has, and what they have, if known."""
        (place,) = self.users.find([user])
        history = None if self.known is None else self.known.history(user, place)
        if place is None and history is None:
            self.users.place(user, "user")
        return None if self.model.needs_histories else place, history

    def history(self, user: Id) -> list[tuple[Id, float]]:
        """Return what a known user has, and the confidences."""
        found = self._known_history(user)
        return [(self.items.ids[place], weight) for place, weight in found.items()]

    def _known_history(self, user: Any) -> History:
        """Return what a known user has; raise if the service does not know."""
        _, history = self._user(user)
        if history is None:
            raise ValueError(
                f"what user {shown(user)} has is not known to the service; give a history, or "
                f"{START}"
            )
        return history

    def _history(
        self, ids: Sequence[Id], weights: Sequence[float] | None
    ) -> tuple[History, tuple[Id, ...]]:
        """Return the confidences by item, and the unknown ids."""
        places = self.items.find(ids)
        history: History = {}
        if weights is None:
            history = dict.fromkeys((place for place in places if place is not None), 1.0)
        else:
            _check_weights(weights, len(ids))
            for place, weight in zip(places, weights, strict=True):
                if place is not None:
                    history[place] = min(history.get(place, 0.0) + weight, LARGEST_WEIGHT)
        if None not in places:
            return history, ()
        named = zip(ids, places, strict=True)
        unknown = tuple(dict.fromkeys(name for name, place in named if place is None))
        if not history and type(unknown[0]) is not type(self.items.ids[0]):
            raise self._unknown_items("the history", unknown)
        return history, unknown

    def _recommend(self, queries: Sequence["_Query"]) -> list[Answer | Exception]:
        """Ask the model once for queries that differ in their users, numbers and exclusions."""
        first = queries[0]
        if first.only is not None and not first.only:
            return [self._ranked(each, [], []) for each in queries]
        most = min(max(each.k + len(each.excluded) for each in queries), self.num_items)
        given: dict[str, Any] = {"N": most, "filter_items": self._unnamed}
        if first.only is not None:
            given = {"N": most, "items": np.array(first.only)}
        try:
            found = self.model.recommend_flagged(
                np.array([each.user or 0 for each in queries]),
                self._matrix([each.history for each in queries]),
                filter_already_liked_items=first.history_removed,
                recalculate_user=first.user is None,
                **given,
            )
        except Exception as problem:
            if len(queries) == 1:
                return [problem]
            return [answer for each in queries for answer in self._recommend([each])]
        rows = zip(queries, *(each.tolist() for each in found), strict=True)
        return [self._ranked(*row) for row in rows]

    def _ranked(
        self, query: "_Query", places: list[int], scores: list[float], popular: bool = False
    ) -> Ranked:
        """Return the first k results that are not excluded, by their ids."""
        names, excluded = self.items.ids, query.excluded
        kept = [
            (names[place], score)
            for place, score in zip(places, scores, strict=True)
            if place >= 0 and place not in excluded
        ][: query.k]
        ids, kept_scores = [name for name, _ in kept], [score for _, score in kept]
        return Ranked(ids, kept_scores, popular, query.unknown, query.history_removed)

    def _matrix(self, histories: Sequence[History]) -> scipy.sparse.csr_matrix:
        """Return histories as rows."""
        indptr = np.zeros(len(histories) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in histories], out=indptr[1:])
        ordered = [sorted(each.items()) for each in histories]
        places = np.array([place for row in ordered for place, _ in row], dtype=np.int32)
        weights = np.array([weight for row in ordered for _, weight in row], dtype=np.float32)
        shape = (len(histories), self.num_items)
        return scipy.sparse.csr_matrix((weights, places, indptr), shape=shape)

    def _similar(self, request: Similar) -> Ranked:
        """Return the items most like one item."""
        own = self.items.place(request.item, "item")
        places, scores = self.model.similar_items(
            own, N=min(request.k + 1, self.num_items), filter_items=self._unnamed
        )
        return self._ranked(_Query(request.k, {own}), places.tolist(), scores.tolist())

    def _explain(self, request: Explain) -> Explained:
        """Return what the items of the history contribute to the score of one item."""
        _check_one_of(request)
        item = self.items.place(request.item, "item")
        unknown: tuple[Id, ...] = ()
        if request.history is None:
            history = self._known_history(request.user)
        else:
            history, unknown = self._history(request.history, request.weights)
        if not history:
            return Explained(request.item, 0.0, [], [], unknown)
        score, parts, _ = self.model.explain(0, self._matrix([history]), item, N=request.k)
        names = [self.items.ids[int(place)] for place, _ in parts]
        return Explained(
            request.item, float(score), names, [float(part) for _, part in parts], unknown
        )


@dataclass(frozen=True)
class _Query:
    """A request by indices; those of the same `call` are answered by one call of the model."""

    k: int
    excluded: set[int]
    only: tuple[int, ...] | None = None
    unknown: tuple[Id, ...] = ()
    user: int | None = None  # None: computed from the history
    history: History = field(default_factory=dict)
    history_removed: bool = True

    @property
    def call(self) -> object:
        return self.user is None, self.history_removed, self.only


def _check_one_of(request: Recommend | Explain) -> None:
    if (request.user is None) == (request.history is None):
        raise ValueError("give either a user or a history")
    if request.history is None and request.weights is not None:
        raise ValueError("weights go with a history; leave them out for a known user")


def _check_weights(weights: Sequence[float], size: int) -> None:
    if len(weights) != size:
        raise ValueError(
            f"weights has a length of {len(weights)}, and the history of {size}; give one weight "
            "each"
        )
    for place, weight in enumerate(weights):
        if not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            raise ValueError(
                f"weight {place} is {weight!r}; weights are from {SMALLEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}, leave the other items out"
            )
