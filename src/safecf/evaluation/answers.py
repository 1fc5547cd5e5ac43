"""What a model answers: rankings, losses of users, and a record of its training.

A model is asked by what it can do. `recommend` is enough; one with `fold_in`, `recommend_factors`
and `user_losses` is folded in once for rankings and losses, and says how it was trained.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.evaluation.alignment import Alignment
from safecf.evaluation.json_records import options_to_json, to_json
from safecf.measures.hits import PADDING
from safecf.measures.tails import Floats, tail_mean, value_at_risk

Answer = tuple[Any, Any, Floats | None]  # ids, scores, losses


def rankings(
    model: Any, alignment: Alignment | None, history: Any, count: int, batch: int
) -> Iterator[tuple[slice, NDArray[Any], Floats | None]]:
    """Yield the rows of a batch, the best `count` items of each, padded with -1, and the losses.

    The losses are None if the model has none.
    """
    _check_factors(model)
    foreign = None if alignment is None else alignment.foreign
    answer = _fold_in if _has_losses(model) else _recommend
    for start in range(0, history.shape[0], batch):
        rows = slice(start, min(start + batch, history.shape[0]))
        shown = known = history[rows]
        if alignment is not None:
            shown = alignment.to_model(known)
        ids, scores, losses = answer(model, rows, shown, count, foreign)
        if alignment is not None:
            ids = alignment.to_split(np.asarray(ids))
        yield rows, _checked(ids, scores, known, count, start), losses


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

    The losses, with their `var` and `cvar`, are those of the stored factors, which are the fold-in
    solutions (w_u = 1), not those of the last epoch. Users without interactions have NaN.
    `weights` are w_u of the last epoch.
    """
    if not hasattr(model, "get_params"):
        return {}
    found: dict[str, Any] = {
        "class": type(model).__name__,
        "params": options_to_json(model.get_params()),
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


def _fold_in(model: Any, rows: slice, shown: Any, count: int, foreign: Any) -> Answer:
    """Fold the users in once, for their rankings and their losses."""
    folded = model.fold_in(shown)
    ids, scores = model.recommend_factors(folded, shown, count, foreign)
    return ids, scores, model.user_losses(check_matrix(shown, allow_empty=True), folded)


def _recommend(model: Any, rows: slice, shown: Any, count: int, foreign: Any) -> Answer:
    """Ask any model for recommendations; there are no losses."""
    users = np.arange(rows.start, rows.stop)
    options = {} if foreign is None else {"filter_items": foreign}
    ids, scores = model.recommend(users, shown, N=count, recalculate_user=True, **options)
    return ids, scores, None


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
