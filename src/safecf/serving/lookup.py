"""`Lookup`: indices by original ids; `Known`: what the users of the data have."""

from collections.abc import Sequence

import numpy as np

from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.errors import shown
from safecf.models import Recommender
from safecf.models.by_ids import Histories, check_named
from safecf.serving.requests import Id, UnknownIdError

History = dict[int, float]  # confidences by item index


class Lookup:
    """Original ids by index, and indices by id; None stands for 0 to size - 1.

    A dictionary finds a few ids faster than the binary search of the library's own index.

    >>> Lookup(np.array(["ann", "bob"], dtype=object), 2).find(["bob", "eve"])
    [1, None]
    """

    def __init__(self, ids: IdArray | None, size: int) -> None:
        self.ids = self.listed(ids, size)
        self._places = {name: place for place, name in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def kind(self) -> str:
        """What the ids are: "integers" or "strings"."""
        return "strings" if self.ids and isinstance(self.ids[0], str) else "integers"

    @staticmethod
    def listed(ids: IdArray | None, size: int) -> Sequence[Id]:
        """Return ids as integers and strings."""
        return range(size) if ids is None else ids[:size].tolist()

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
            return f"{known}; its ids are {self.kind}, convert these"
        return known


class Known:
    """What users have, by the model's items and users: their rows of one `Csr`.

    Users of the data whom the model does not know, as they are newer, have a row as well.
    """

    def __init__(self, model: Recommender, data: Interactions, users: Lookup) -> None:
        check_named(model, data, users_too=True)
        self._histories = Histories.of_users(model, data, np.arange(data.num_users))
        ids = Lookup.listed(data.user_ids, data.num_users)
        places = np.array([-1 if place is None else place for place in users.find(ids)], int)
        old = np.flatnonzero(places >= 0)
        self._rows = np.full(len(users), -1, dtype=np.int32)
        self._rows[places[old]] = old
        self._new = {ids[row]: row for row in np.flatnonzero(places < 0).tolist()}

    def history(self, user: Id, place: int | None) -> History | None:
        """Return the confidences by item of a user, who is at this place in the model."""
        row = self._new.get(user, -1) if place is None else int(self._rows[place])
        if row < 0:
            return None
        found = self._histories.take(np.array([row]))
        columns, weights = found.row(0)
        return dict(zip(columns.tolist(), weights.tolist(), strict=True))
