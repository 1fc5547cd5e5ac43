"""`Engine`: a fitted model that answers batches of requests by original ids."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices.ids import IdArray
from safecf.errors import shown
from safecf.models import Recommender
from safecf.models.popularity import resized
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

Indices = NDArray[np.int64]
History = dict[int, float]  # confidences by item index


class Names:
    """Original ids by index, and indices by id; None stands for 0 to size - 1.

    >>> Names(np.array(["ann", "bob"], dtype=object), 2).find(["bob", "eve"])
    [1, None]
    """

    def __init__(self, ids: IdArray | None, size: int) -> None:
        self.ids: Sequence[Id] = range(size) if ids is None else ids[:size].tolist()
        self._places = {name: place for place, name in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, asked: Sequence[Id]) -> list[int | None]:
        """Return the index of every id, None if it is unknown."""
        return list(map(self._places.get, asked))

    def place(self, asked: Id, what: str) -> int:
        """Return the index of an id."""
        found = self._places.get(asked)
        if found is None:
            raise UnknownIdError(f"unknown {what} {shown(asked)}: {self.hint([asked])}")
        return found

    def hint(self, asked: Sequence[Id]) -> str:
        """Return what to try instead of unknown ids."""
        if not self.ids:
            return "the model knows none"
        first = self.ids[0]
        known = f"the model knows {len(self.ids):,}, such as {shown(first)}"
        if isinstance(first, str) != isinstance(asked[0], str):
            kind = "strings" if isinstance(first, str) else "integers"
            return f"{known}; its ids are {kind}, convert these"
        return known


class Engine:
    """A model and its ids. Answers have the bits of the model's own, whatever else is in the batch.

    >>> Engine(safecf.load("model.safetensors")).answer([Recommend(history=("alien",), k=20)])
    [Ranked(ids=['aliens', ...], ...)]
    """

    def __init__(self, model: Recommender) -> None:
        users, items = model.sizes()
        self.model = model
        self.users = Names(model.user_ids, users)
        self.items = Names(model.item_ids, items)
        self.num_items = items
        # items that a partial fit has added without an id cannot be named, nor recommended
        self._unnamed = np.arange(len(self.items), items) if len(self.items) < items else None
        self.popularity = resized(model.item_popularity, items)
        self._alone: dict[type, Callable[[Any], Answer]] = {
            Similar: self._similar,
            Explain: self._explain,
        }

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

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
                else:
                    answers[place] = self._alone[type(request)](request)
            except Exception as problem:  # of this request alone
                answers[place] = problem
        for group in together.values():
            places, queries = zip(*group, strict=True)
            for place, found in zip(places, self._recommend(queries), strict=True):
                answers[place] = found
        return [found for found in answers if found is not None]

    def _query(self, request: Recommend) -> "_Query":
        """Find the ids of a request."""
        excluded = {place for place in self.items.find(request.exclude) if place is not None}
        only = None
        if request.items is not None:
            chosen = {place for place in self.items.find(request.items) if place is not None}
            only = tuple(sorted(chosen - excluded))
            excluded = set()
        if request.history is None:
            if request.user is None:
                raise ValueError("there is neither a user nor a history; give one of them")
            if self.model.needs_histories:
                raise ValueError(
                    f"{self.name} stores nothing of the users; give a history instead of a user"
                )
            user = self.users.place(request.user, "user")
            return _Query(request.k, excluded, only, user=user)
        history, unknown = self._history(request.history, request.weights)
        if not request.keep_history:
            excluded -= history.keys()
        return _Query(
            request.k, excluded, only, unknown, history=history, keep_history=request.keep_history
        )

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
            raise UnknownIdError(
                f"no item of the history is known, such as {shown(unknown[0])}: "
                f"{self.items.hint(unknown)}"
            )
        return history, unknown

    def _recommend(self, queries: Sequence["_Query"]) -> list[Answer | Exception]:
        """Ask the model once for queries that differ in their users, numbers and exclusions."""
        first = queries[0]
        if first.only is not None and not first.only:
            return [Ranked([], [], unknown=each.unknown) for each in queries]
        most = min(max(each.k + len(each.excluded) for each in queries), self.num_items)
        given: dict[str, Any] = {"N": most, "filter_items": self._unnamed}
        if first.only is not None:
            given = {"N": most, "items": np.array(first.only)}
        try:
            if first.history is None:
                users = np.array([each.user for each in queries])
                found = self.model.recommend_flagged(
                    users, None, filter_already_liked_items=False, **given
                )
            else:
                histories = self._matrix([each.history or {} for each in queries])
                found = self.model.recommend_flagged(
                    np.zeros(len(queries), dtype=np.int64),
                    histories,
                    filter_already_liked_items=not first.keep_history,
                    recalculate_user=True,
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
        return Ranked([n for n, _ in kept], [s for _, s in kept], popular, query.unknown)

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
        item = self.items.place(request.item, "item")
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
    user: int | None = None
    history: History | None = None
    keep_history: bool = False

    @property
    def call(self) -> object:
        return self.history is None, self.keep_history, self.only


def _check_weights(weights: Sequence[float], size: int) -> None:
    if len(weights) != size:
        raise ValueError(
            f"there are {len(weights)} weights for {size} items of the history; give one each"
        )
    for place, weight in enumerate(weights):
        if not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            raise ValueError(
                f"weight {place} is {weight!r}; weights are from {SMALLEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}, leave the other items out"
            )
