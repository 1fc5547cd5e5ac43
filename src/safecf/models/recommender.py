"""`Recommender`: what every model can be asked, in the vocabulary of `implicit`."""

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, ClassVar, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from safecf.checks import check_type
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.defaults import AUTO
from safecf.errors import FileFormatError, ParameterWarning, warn
from safecf.models import by_ids, files
from safecf.models.callbacks import Callback
from safecf.models.changes import Changes
from safecf.models.derived import Derived
from safecf.models.json_values import check_kept
from safecf.models.options import check_options
from safecf.models.popularity import resized
from safecf.models.ranking import Ids, Scores

File = str | os.PathLike[str] | IO[bytes]


class Recommender(ABC):
    """A model that ranks items for users. Users are the rows of the data, items the columns.

    The constructor stores its arguments under their own names and looks at none of them; `fit`
    checks them all.

    >>> model = SAFER2(factors=32, random_state=0).fit(user_items)
    >>> ids, scores = model.recommend(7, user_items[7], N=20)
    """

    shape: tuple[int, int] = (0, 0)
    user_ids: IdArray | None = None
    item_ids: IdArray | None = None

    # share of the training users who have each item; None in models from files of version 0.1
    item_popularity: NDArray[np.float32] | None = None

    # the values that a fit has found for options that are "auto", by name
    resolved: Mapping[str, float] = {}

    # how the options were found, as `tune` tells; saved with the model, forgotten by `fit`
    provenance: dict[str, Any] | None = None

    # values of options that are not in files from before these options were added
    earlier_options: ClassVar[Mapping[str, Any]] = {}

    # whether the model stores nothing of the users, so that it has to be shown their histories
    needs_histories = False

    @property
    def is_fitted(self) -> bool:
        """Whether the model was fitted or loaded."""
        return self.shape != (0, 0)

    @abstractmethod
    def fit(
        self, user_items: Any, show_progress: bool = True, callback: Callback | None = None
    ) -> Self:
        """Train from scratch; an earlier fit is forgotten. An error leaves the model as it was.

        While it runs, other fits and partial fits of the same model are refused.

        Parameters
        ----------
        user_items
            Sparse matrix (users, items); the values are confidence weights, 1 if there are none.
        show_progress
            Whether to show a progress bar on stderr.
        callback
            Called as `callback(epoch, seconds, objective)` after every epoch, counted from 0.
            Training stops when it returns True.
        """

    @abstractmethod
    def recommend(
        self,
        userid: ArrayLike,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best items of one user, or of every user of an array.

        A user of whom nothing is known, because there are no interactions or only with items that
        have none in training, gets the most popular items; their scores are the shares of the
        training users who have them, `item_popularity`.

        Parameters
        ----------
        userid
            One user (the results are 1-D) or an array of users (2-D, one row each).
        user_items
            Sparse matrix with one row per user in `userid`: what the user already has. Only
            looked at by `filter_already_liked_items` and `recalculate_user`.
        N
            How many items; at most the number of items, or of `items`. The width of the results.
        filter_already_liked_items
            Whether to leave out the items in the user's row of `user_items`.
        filter_items
            Items to leave out for everybody.
        recalculate_user
            Whether to compute the user from `user_items` instead of what was stored in training;
            `userid` may then be any integer.
        items
            Rank only these. Not together with `filter_items`.

        Returns
        -------
        ids, scores
            Best first, ties by item index; where filters leave fewer than N items, the ids are
            -1 and the scores -3.4e38.
        """

    @abstractmethod
    def ranks(self, user_items: Any, target: Any, filter_items: ArrayLike | None = None) -> Ids:
        """Return the rank of every item in `target`, among all that the user does not have yet.

        rank_ui = 1 + |{j not in user_items_u : score_uj > score_ui, or equal and j < i}|

        It is the item's place in the list that `recommend` would return for a user who is computed
        from `user_items`, if N were the number of items.

        Parameters
        ----------
        user_items
            Sparse matrix with one row per user: what the user already has, which is not ranked.
        target
            Sparse matrix with one row per user: the items whose ranks are wanted.
        filter_items
            Items that are not ranked for anybody.

        Returns
        -------
        ranks
            One per entry of `target`, row by row, items ascending; 0 for an item that is not
            ranked.

        >>> model.ranks(history, target)  # of two users who have two and one held-out items
        array([12,  3, 40], dtype=int32)
        """

    @abstractmethod
    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N items most like one item, or like every item of an array.

        An item is most like itself. The rest is as in `recommend`; `item_users` is a sparse
        matrix with one row per item and a column per user, needed for `recalculate_item`.
        """

    @abstractmethod
    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N users most like one user, or like every user of an array."""

    def rank_items(
        self,
        userid: ArrayLike,
        user_items: Any,
        selected_items: ArrayLike,
        recalculate_user: bool = False,
    ) -> tuple[Ids, Scores]:
        """Return all of `selected_items`, best first, with their scores."""
        return self.recommend(
            userid,
            user_items,
            N=max(1, np.size(selected_items)),
            filter_already_liked_items=False,
            recalculate_user=recalculate_user,
            items=selected_items,
        )

    def recommend_frame(
        self,
        users: ArrayLike | None = None,
        N: int = 10,
        *,
        user_items: Interactions | None = None,
        filter_already_liked_items: bool = True,
        recalculate_user: bool = False,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> pa.Table:
        """Return the N best items of users, as an Arrow table: user, item, score and rank.

        `.to_pandas()` makes a pandas frame of it, `polars.from_arrow(...)` a polars one.

        Parameters
        ----------
        users
            One id or an array of ids; None means all that the model knows, or all in `user_items`
            if they are recalculated.
        N
            How many items at most; ranks go from 1 to N, or to the number of items.
        user_items
            What the users already have; its users and items are found by their ids. Items that
            the model does not know are left out with a warning; if it knows none, that is an error.
        filter_already_liked_items
            Whether to leave out what they have; this needs `user_items`, as every answer of
            `EASE` does.
        recalculate_user
            Whether to compute the users from `user_items`, so that they may be new to the model.
        filter_items, items
            Ids of items to leave out, or to choose from. Unknown ids raise a KeyError.
        """
        return by_ids.recommend_frame(
            self,
            users,
            N,
            user_items=user_items,
            filter_already_liked_items=filter_already_liked_items,
            recalculate_user=recalculate_user,
            filter_items=filter_items,
            items=items,
        )

    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items; an error if the model is not fitted."""

    def popularity(self, items: NDArray[np.int64] | None = None) -> Scores:
        """Return the `item_popularity` of all items, or of these; 0 for one that is not known."""
        if self.item_popularity is None:
            warn(
                "users of whom nothing is known get the first items with score 0: the model's file "
                "is of version 0.1 and does not tell how popular items are; fit the model again",
                ParameterWarning,
            )
        found = resized(self.item_popularity, self.sizes()[1])
        return found if items is None else found[items]

    def get_params(self) -> dict[str, Any]:
        """Return the constructor's arguments and their values."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name].default)
        ]
        shown += [
            f"{name}='auto: {value:.3g}'"
            for name, value in self.resolved.items()
            if getattr(self, name) == AUTO
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def derived(self) -> Derived:
        """Cache of what is computed from the model's arrays; neither copied nor saved."""
        found: Derived = vars(self).setdefault("_derived", Derived())
        return found

    @property
    def changes(self) -> Changes:
        """Who may change the model now; neither copied nor saved."""
        found: Changes = vars(self).setdefault("_changes", Changes())
        return found

    def __getstate__(self) -> dict[str, Any]:
        own = ("_derived", "_changes")
        return {name: value for name, value in vars(self).items() if name not in own}

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Refuse other fits while the block runs; restore the attributes if it raises."""
        with self.changes.fit():
            before = dict(vars(self))
            vars(self).pop("provenance", None)
            try:
                yield
            except BaseException:
                vars(self).clear()
                vars(self).update(before)
                raise

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what training has found, as JSON values and as arrays."""

    @abstractmethod
    def _unpack(self, fitted: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Read and validate what `_pack` returned."""

    def save(self, file: File) -> None:
        """Write the model into one safetensors file.

        Parameters
        ----------
        file
            A path, which gets the suffix .safetensors if it has none, or a binary file. A path
            is replaced in one go: whatever happens, it holds the old model or the new one.
        """
        fitted, arrays = self._pack()
        options = self.get_params()
        check_options(options, type(self))
        if not isinstance(options.get("random_state"), int | np.integer | None):
            options["random_state"] = fitted["seed"]
        header: dict[str, Any] = {"class": type(self).__name__, "options": options}
        header["fitted"] = fitted
        if self.provenance is not None:
            check_type("provenance", self.provenance, dict, "give a dict, or None")
            check_kept("provenance", self.provenance)
            header["provenance"] = self.provenance
        files.write(file, files.MODEL, header, arrays)

    @classmethod
    def load(cls, file: File) -> Self:
        """Read a model from a path or a binary file; no code in it is ever run.

        Called on a base class it returns a model of whatever class the file holds.
        """
        with files.naming(file):
            header, arrays = files.read(file, files.MODEL)
            kind = MODELS.get(files.field(header, "class", str))
            if kind is None:
                raise FileFormatError(
                    f"it holds a {header['class']!r}, known are {', '.join(MODELS)}; "
                    "try a newer version of safecf"
                )
            if not issubclass(kind, cls):
                raise FileFormatError(
                    f"it holds a {kind.__name__}, not a {cls.__name__}; "
                    f"try {kind.__name__}.load, or safecf.load"
                )
            options = {**kind.earlier_options, **files.field(header, "options", dict)}
            unknown = options.keys() - inspect.signature(kind).parameters.keys()
            if unknown:
                raise FileFormatError(
                    f"{kind.__name__} has no option {min(unknown)!r}; try a newer version of safecf"
                )
            try:
                check_options(options, kind)
            except (TypeError, ValueError) as problem:
                raise FileFormatError(f"an option is damaged: {problem}") from problem
            model = kind(**options)
            model._unpack(files.field(header, "fitted", dict), arrays)
            if "provenance" in header:
                model.provenance = files.field(header, "provenance", dict)
        return model


MODELS: dict[str, type[Recommender]] = {}
AnyModel = TypeVar("AnyModel", bound=type[Recommender])


def register(model: AnyModel) -> AnyModel:
    """Add a model class to `MODELS`, the table of all that can be loaded and tested."""
    MODELS[model.__name__] = model
    return model
