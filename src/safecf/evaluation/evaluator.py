"""`evaluate`: rank for held-out users, in batches, and score every user."""

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from safecf import _core
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.errors import choose
from safecf.evaluation.alignment import Alignment, align, warn_of_known_users
from safecf.evaluation.exposure import EXPOSURE, count_exposure
from safecf.evaluation.result import Evaluation
from safecf.evaluation.training import Floats, describe_training, user_weights
from safecf.evaluation.users import UserProfile
from safecf.measures.hits import PADDING, find_hits
from safecf.measures.metrics import METRICS
from safecf.measures.tails import check_level
from safecf.models.als import ALSModel

PARTS = ("test", "validation")
TAILS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def evaluate(
    model: Any,
    split: Any,
    k: Sequence[int] = (20, 50, 100),
    tails: Sequence[float] = TAILS,
    metrics: Sequence[str] = ("recall", "ndcg", "precision", "map", "mrr", "hit"),
    on: str = "test",
    name: str | None = None,
    batch: int = 2048,
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Rank the items for every held-out user of `split`, and score the rankings.

    The users are folded in from their history, whose items are left out of the ranking. Only the
    rankings of one batch are held at a time, never the scores of all items. A ranking that is
    shorter than K, as where K exceeds the catalogue, is filled up with misses.

    Parameters
    ----------
    model
        A fitted `Recommender`, or anything with its `recommend`. Its items are found by their
        ids where it knows them and the split does; item i of others is column i of the split.
    split
        A `Split`, with `train` and the held-out users `on`.
    k
        The cutoffs K.
    tails
        Shares of worst-off users that tables and comparisons show.
    metrics
        Names of `METRICS`.
    on
        "test" or "validation".
    name
        What to call the model; its class by default.
    batch
        Number of users that are ranked at once.
    settings
        What else it takes to get the same numbers again, such as where the data come from, how
        they were split, or the command: names and values, kept in the evaluation as they are.

    >>> evaluation = evaluate(model, split)
    >>> evaluation.tail("recall@20", 0.3), evaluation.interval("recall@20", 0.3)
    """
    cutoffs = _checked_cutoffs(k, batch)
    formulas = {each: choose("metric", each, METRICS) for each in metrics}
    if not len(tails):
        raise ValueError("tails is empty; give at least one level, such as (0.3, 1.0)")
    for level in tails:
        check_level(level)
    heldout = choose("part of the split", on, {p: getattr(split, p, None) for p in PARTS})
    train = check_matrix(split.train, name="split.train")
    history, target = _checked_users(heldout, on, train.num_columns)
    alignment = align(model, split)
    warn_of_known_users(model, split, on)

    scores: dict[str, list[NDArray[np.float64]]] = {
        f"{metric}@{cutoff}": [] for metric in formulas for cutoff in cutoffs
    }
    exposure = {cutoff: np.zeros(train.num_columns, dtype=np.int64) for cutoff in cutoffs}
    losses: list[Floats] = []
    for rows, ranked, lost in _rankings(model, alignment, history, cutoffs[-1], batch):
        losses += [] if lost is None else [lost]
        hits, held_out = find_hits(ranked, target[rows], cutoffs[-1])
        for cutoff in cutoffs:
            exposure[cutoff] += count_exposure(ranked, train.num_columns, cutoff)
            for metric, formula in formulas.items():
                scores[f"{metric}@{cutoff}"].append(formula.of_hits(hits, held_out, cutoff))
    trained = train
    if alignment is not None:
        trained = check_matrix(alignment.to_model(split.train), name="split.train")
    user_losses = np.concatenate(losses) if losses else None
    return Evaluation(
        model=type(model).__name__ if name is None else name,
        scores={key: np.concatenate(parts) for key, parts in scores.items()},
        k=cutoffs,
        tails=tuple(float(level) for level in tails),
        users=_profile(train, history, target, getattr(heldout, "groups", None)),
        catalogue={
            f"{measure}@{cutoff}": formula(exposure[cutoff])
            for measure, formula in EXPOSURE.items()
            for cutoff in cutoffs
        },
        training=describe_training(model, trained),
        losses=user_losses,
        weights=user_weights(model, user_losses),
        versions=_versions(),
        data=_fingerprint(history, target),
        settings=dict(settings or {}),
    )


def _checked_cutoffs(k: Sequence[int], batch: int) -> tuple[int, ...]:
    """Return the cutoffs in ascending order."""
    if batch < 1:
        raise ValueError(f"batch is {batch}; rank at least 1 user at once, try 2048")
    cutoffs = sorted({int(cutoff) for cutoff in np.atleast_1d(k)})
    if not cutoffs or cutoffs[0] < 1:
        raise ValueError(f"k is {k}; give cutoffs of at least 1, such as (20, 50, 100)")
    return tuple(cutoffs)


def _checked_users(heldout: Any, on: str, num_items: int) -> tuple[Any, Any]:
    """Return history and target of the held-out users as CSR."""
    if heldout is None:
        raise ValueError(f"the split has no {on} users; split with a {on} set, or change `on`")
    for name in ("history", "target"):
        matrix = check_matrix(
            getattr(heldout, name), name=f"{on}.{name}", columns=num_items, allow_empty=True
        )
        if name == "target" and matrix.nnz == 0:
            raise ValueError(
                f"none of the {matrix.num_rows} {on} users has held-out items, so there is "
                "nothing to measure; hide more of their interactions"
            )
    history, target = heldout.history.tocsr(), heldout.target.tocsr()
    if history.shape[0] != target.shape[0]:
        raise ValueError(
            f"{on}.history has {history.shape[0]} rows and {on}.target {target.shape[0]}; "
            "give both one row per user"
        )
    both = (history != 0).multiply(target != 0).tocoo()
    if both.nnz:
        raise ValueError(
            f"{both.nnz:,} entries of {on}.target are in {on}.history as well, such as row "
            f"{both.row[0]}, item {both.col[0]}; what is shown is not ranked, so leave it out of "
            "one of them"
        )
    return history, target


def _rankings(
    model: Any, alignment: Alignment | None, history: Any, count: int, batch: int
) -> Iterator[tuple[slice, NDArray[Any], Floats | None]]:
    """Yield the best `count` items of every user, batch by batch, padded with -1, and the losses.

    The losses are those of models that have one, else None.
    """
    for side in ("user_factors", "item_factors"):
        factors = getattr(model, side, None)
        if isinstance(factors, np.ndarray) and not np.isfinite(factors).all():
            row = int(np.argmin(np.isfinite(factors).all(axis=1)))
            raise ValueError(
                f"{side} of the model hold NaN or infinity, first in row {row}, and rank nothing; "
                "train it again with more regularization"
            )
    foreign = None if alignment is None else alignment.foreign
    answer = _folded_in if isinstance(model, ALSModel) else _asked
    for start in range(0, history.shape[0], batch):
        rows = slice(start, min(start + batch, history.shape[0]))
        shown = known = history[rows]
        if alignment is not None:
            shown = alignment.to_model(known)
        ids, scores, losses = answer(model, rows, shown, count, foreign)
        if alignment is not None:
            ids = alignment.to_split(np.asarray(ids))
        yield rows, _checked_answer(ids, scores, known, count, start), losses


def _folded_in(
    model: ALSModel, rows: slice, shown: Any, count: int, foreign: Any
) -> tuple[Any, Any, Floats | None]:
    """Return rankings, scores and losses of users that are folded in once for all of them."""
    folded = model.fold_in(shown)
    ids, scores = model.recommend_factors(folded, shown, count, foreign)
    return ids, scores, model.user_losses(check_matrix(shown, allow_empty=True), folded)


def _asked(
    model: Any, rows: slice, shown: Any, count: int, foreign: Any
) -> tuple[Any, Any, Floats | None]:
    """Return rankings and scores of anything that recommends; it has no losses."""
    users = np.arange(rows.start, rows.stop)
    options = {} if foreign is None else {"filter_items": foreign}
    ids, scores = model.recommend(users, shown, N=count, recalculate_user=True, **options)
    return ids, scores, None


def _checked_answer(ids: Any, scores: Any, known: Any, count: int, start: int) -> NDArray[Any]:
    """Return the ids, padded up to `count` columns, or say what is wrong with the answer."""
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


def _profile(train: Csr, history: Any, target: Any, groups: Any) -> UserProfile:
    """Describe the users; an item's popularity is its mid-rank by count, from 0 to 1."""
    popularity = np.bincount(train.indices, minlength=train.num_columns)
    percentile = (scipy.stats.rankdata(popularity) - 0.5) / popularity.size
    shown = check_matrix(history, name="history", allow_empty=True)
    length = np.diff(shown.indptr)
    binary = Csr(shown.indptr, shown.indices, None, shown.shape)
    mean = np.full(length.size, np.nan)
    np.divide(binary.row_mass(percentile), length, out=mean, where=length > 0)
    labels = None if groups is None else np.asarray(groups)
    if labels is not None and labels.shape != length.shape:
        raise ValueError(
            f"groups have shape {labels.shape}, while there are {length.size} users; "
            "give one label per user"
        )
    if labels is not None and labels.dtype.kind not in "iub":
        labels = labels.astype(str)
    held_out = check_matrix(target, name="target", allow_empty=True)
    return UserProfile(length, np.diff(held_out.indptr), mean, labels)


def _versions() -> dict[str, str]:
    found = {name: version(name) for name in ("numpy", "scipy", "safecf")}
    return {"python": platform.python_version(), **found, "kernels": _core.isas()[0]}


def _fingerprint(history: Any, target: Any) -> str:
    """Return a checksum of who was shown and asked what."""
    found = hashlib.sha256()
    for matrix in (history, target):
        checked = check_matrix(matrix, name="history or target", allow_empty=True)
        found.update(np.array(checked.shape, dtype="<i8").tobytes())
        found.update(checked.indptr.astype("<i8").tobytes())
        found.update(checked.indices.astype("<i4").tobytes())
    return found.hexdigest()
