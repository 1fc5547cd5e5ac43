"""What a model answers: rankings, losses of users, and a record of its training.

A model is asked by what it can do. `recommend` is enough; one with `fold_in`, `recommend_factors`
and `user_losses` is folded in once for rankings and losses, and says how it was trained. The ranks
of held-out items come from `ranks`, or from a ranking of all items.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.evaluation.alignment import Alignment
from safecf.evaluation.json_records import options_to_json, to_json
from safecf.measures.hits import PADDING
from safecf.measures.ranks import Ranks
from safecf.measures.tails import Floats, tail_mean, value_at_risk

# Ranked items that are held at once, where a model has to rank all of them.
RANKED = 2**22


class Reply(NamedTuple):
    """What a model returns: its best items, ranks of the wanted items, and losses of the users."""

    ids: Any
    scores: Any
    ranks: Any = None
    losses: Floats | None = None


class Answer(NamedTuple):
    """What a model answers for some users; losses are None if it has none.

    `ranked` are the best items, padded with -1, and `ranks` those of the held-out items, if wanted.
    """

    rows: slice
    ranked: NDArray[Any]
    ranks: Ranks | None
    losses: Floats | None


def answers(
    model: Any,
    alignment: Alignment | None,
    history: Any,
    target: Any,
    count: int,
    batch: int,
    *,
    whole: bool,
) -> Iterator[Answer]:
    """Yield the answers for a batch of users at a time: their best `count` items.

    With `whole`, the ranks of the items in `target` are wanted as well.
    """
    _check_factors(model)
    num_items = history.shape[1]
    folds = _has_losses(model)
    ask = _fold_in if folds else _recommend
    counts = whole and hasattr(model, "ranks_of_factors" if folds else "ranks")
    foreign = None if alignment is None else alignment.foreign
    width = count
    if whole and not counts:
        width = max(count, num_items if alignment is None else alignment.num_items)
        batch = max(1, min(batch, RANKED // width))
    for start in range(0, history.shape[0], batch):
        rows = slice(start, min(start + batch, history.shape[0]))
        shown, wanted = known, hidden = history[rows], target[rows]
        if alignment is not None:
            shown, wanted = alignment.to_model(known), alignment.to_model(hidden)
        reply = ask(model, rows, shown, wanted if counts else None, width, foreign)
        ids = np.asarray(reply.ids)
        if alignment is not None:
            ids = alignment.to_split(ids)
        ranked = _checked(ids, reply.scores, known, width, start)
        ranks = None
        candidates = num_items - np.diff(known.indptr).astype(np.int64)
        if counts:
            held_out = np.diff(hidden.indptr).astype(np.int64)
            ranks = Ranks.of(*_checked_ranks(reply.ranks, wanted), held_out, candidates)
        elif whole:
            ranks = Ranks.from_rankings(ranked, hidden, candidates)
        yield Answer(rows, ranked[:, :count], ranks, reply.losses)


def training_weights(model: Any, losses: Floats | None) -> Floats | None:
    """Return the weights w_u that the last epoch's xi gives to users with these losses.

    None if there are no losses or no epochs, or if training weighed groups of users: the groups
    of new users are not known.
    """
    if losses is None or not getattr(model, "history", []) or model.group_weights is not None:
        return None
    weights: Floats = model.training_weights(losses)
    return weights


def training_record(model: Any, train: Csr) -> dict[str, Any]:
    """Return class, options, epochs and losses of a model; nothing if it has no `get_params`.

    `resolved` has the values that "auto" options had.
    The losses, with their `var` and `cvar`, are those of the stored factors, which are the fold-in
    solutions (w_u = 1), not those of the last epoch. Users without interactions have NaN.
    `weights` are w_u of the last epoch.
    """
    if not hasattr(model, "get_params"):
        return {}
    found: dict[str, Any] = {
        "class": type(model).__name__,
        "params": options_to_json(model.get_params()),
        "resolved": options_to_json(getattr(model, "resolved", {})),
        "history": [to_json(epoch) for epoch in getattr(model, "history", [])],
        "tail": None,
        "var": None,
        "cvar": None,
        "losses": None,
        "weights": None,
    }
    if not _has_losses(model):
        return found
    found["tail"] = tail = min(float(model.compose().risk.tail), 1.0)
    users = model.user_factors
    if users is not None and len(users) == train.num_rows:
        has_some = np.diff(train.indptr) > 0
        losses = np.where(has_some, model.user_losses(train, users), np.nan)
        found["losses"], found["weights"] = losses, model.user_weights.copy()
        active = has_some & (model.user_counts > 0)
        counts = model.user_counts[active]
        found["var"] = -value_at_risk(-losses[active], tail, counts)
        found["cvar"] = -tail_mean(-losses[active], tail, counts)
    return found


def _has_losses(model: Any) -> bool:
    return all(hasattr(model, name) for name in ("fold_in", "recommend_factors", "user_losses"))


def _fold_in(model: Any, rows: slice, shown: Any, wanted: Any, count: int, foreign: Any) -> Reply:
    """Fold the users in once, for their rankings, ranks and losses."""
    folded = model.fold_in(shown)
    ids, scores = model.recommend_factors(folded, shown, count, foreign)
    ranks = None if wanted is None else model.ranks_of_factors(folded, shown, wanted, foreign)
    losses = model.user_losses(check_matrix(shown, allow_empty=True), folded)
    return Reply(ids, scores, ranks, losses)


def _recommend(model: Any, rows: slice, shown: Any, wanted: Any, count: int, foreign: Any) -> Reply:
    """Ask any model for recommendations; there are no losses."""
    users = np.arange(rows.start, rows.stop)
    options = {} if foreign is None else {"filter_items": foreign}
    ids, scores = model.recommend(users, shown, N=count, recalculate_user=True, **options)
    return Reply(ids, scores, None if wanted is None else model.ranks(shown, wanted, **options))


def _check_factors(model: Any) -> None:
    """Raise if factors are not finite."""
    for side in ("user_factors", "item_factors"):
        factors = getattr(model, side, None)
        if isinstance(factors, np.ndarray) and not np.isfinite(factors).all():
            row = int(np.argmin(np.isfinite(factors).all(axis=1)))
            raise ValueError(
                f"{side} of the model hold NaN or infinity, first in row {row}, and rank nothing; "
                "train it again with more regularization"
            )


def _checked_ranks(ranks: Any, wanted: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return user and rank of every wanted item; raise unless there is one rank for each."""
    found = np.asarray(ranks)
    if found.shape != (wanted.nnz,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise ValueError(
            f"ranks returned an array of shape {found.shape} and type {found.dtype} for "
            f"{wanted.nnz} held-out items; it has one rank for each, from 1, or 0 if not ranked"
        )
    return np.repeat(np.arange(wanted.shape[0]), np.diff(wanted.indptr)), found


def _checked(ids: Any, scores: Any, known: Any, count: int, start: int) -> NDArray[Any]:
    """Return the ids, padded to `count` columns; raise if shapes or scores are wrong."""
    ids, scores = np.asarray(ids), np.asarray(scores)
    users, num_items = known.shape
    if ids.shape != scores.shape or ids.ndim != 2 or len(ids) != users or ids.shape[1] > count:
        raise ValueError(
            f"recommend returned ids of shape {ids.shape} and scores of shape {scores.shape} for "
            f"{users} users and N={count}; both have one row per user and at most N columns"
        )
    bad = ~np.isfinite(scores) & (ids != PADDING)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"recommend returned the score {scores[row, column]} for user {start + row}, item "
            f"{ids[row, column]}; train the model again with more regularization"
        )
    if (ids == PADDING).all() and (np.diff(known.indptr) < num_items).any():
        raise ValueError(
            f"recommend returned no item for any of the users {start} to {start + users - 1}; "
            "check that the model's scores are numbers"
        )
    padding = np.full((users, count - ids.shape[1]), PADDING, dtype=ids.dtype)
    return np.hstack([ids, padding]) if padding.size else ids
