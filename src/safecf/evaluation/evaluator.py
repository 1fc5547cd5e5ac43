"""`evaluate`: rank items for held-out users, in batches, and score every user."""

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from safecf import _core
from safecf.checks import check_integer, check_list, check_type
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.defaults import CUTOFFS, TAILS
from safecf.errors import choose, shown
from safecf.evaluation.alignment import align, held_out_ids, warn_of_known_users
from safecf.evaluation.answers import answers, training_record, training_weights
from safecf.evaluation.profile import describe_users
from safecf.evaluation.result import Evaluation
from safecf.measures.exposure import EXPOSURE, count_exposure
from safecf.measures.hits import find_hits
from safecf.measures.metrics import METRICS
from safecf.measures.ranks import RANK_METRICS
from safecf.measures.tails import Floats, check_levels

PARTS = ("test", "validation")
ALL_METRICS = tuple(METRICS | RANK_METRICS)
LARGEST_CUTOFF = 999_999_999
CUTOFF = re.compile("[1-9][0-9]{0,8}")  # as in the names of scores, such as recall@20


def evaluate(
    model: Any,
    split: Any,
    k: Sequence[int] = CUTOFFS,
    tails: Sequence[float] = TAILS,
    metrics: Sequence[str] = ALL_METRICS,
    on: str = "test",
    name: str | None = None,
    batch: int = 2048,
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Rank the items for every held-out user of `split`, and score the rankings.

    The users are folded in from their history, whose items are left out of the ranking. Only the
    rankings of one batch are in memory at a time. A ranking shorter than K, as where K exceeds the
    catalogue, is padded with misses. For metrics over the whole ranking the model is asked for
    `ranks`, or to rank all items if it has none; held-out items that it does not rank come last.

    Parameters
    ----------
    model
        A fitted `Recommender`, or anything with its `recommend`. If both the model and the split
        have item ids, items are matched by them; else item i is column i of the split.
    split
        A `Split`, with `train` and the held-out users `on`.
    k
        The cutoffs K.
    tails
        Shares of worst-off users that tables and comparisons show.
    metrics
        Names of `METRICS`, which are computed at every cutoff, as "recall@20", and of
        `RANK_METRICS`, which are computed over the whole ranking, as "auc"; "ndcg" is both.
    on
        "test" or "validation".
    name
        Name of the model in results; its class by default.
    batch
        Number of users that are ranked at once.
    settings
        Names and values to store with the results, such as the source of the data, the split, or
        the command: whatever else is needed to repeat the evaluation.

    Examples
    --------
    >>> evaluation = evaluate(model, split)
    >>> evaluation.tail("recall@20", 0.3), evaluation.interval("recall@20", 0.3)
    """
    _check_model(model)
    _check_split(split)
    check_integer("batch", batch, 1, 2048)
    cutoffs, levels, names = (
        _checked_cutoffs(k),
        check_levels(tails, "tails"),
        _checked_metrics(metrics),
    )
    check_type("name", name, (str, type(None)), "give the model's name as a text")
    check_type("settings", settings, (Mapping, type(None)), "give names and values, or None")
    formulas = {each: METRICS[each] for each in names if each in METRICS}
    whole = {each: RANK_METRICS[each] for each in names if each in RANK_METRICS}
    heldout = choose("part of the split", on, {p: getattr(split, p, None) for p in PARTS})
    train = check_matrix(split.train, name="split.train")
    history, target = _checked_users(heldout, on, train.num_columns)
    alignment = align(model, split)
    warn_of_known_users(model, split, on)

    scores: dict[str, list[Floats]] = {
        f"{metric}@{cutoff}": [] for metric in formulas for cutoff in cutoffs
    }
    scores |= {metric: [] for metric in whole}
    exposure = {cutoff: np.zeros(train.num_columns, dtype=np.int64) for cutoff in cutoffs}
    losses: list[Floats] = []
    length = min(cutoffs[-1], train.num_columns)
    seen, hidden = history.to_scipy(), target.to_scipy()
    for rows, ranked, ranks, lost in answers(
        model, alignment, seen, hidden, length, batch, whole=bool(whole)
    ):
        losses += [] if lost is None else [lost]
        if ranks is not None:
            for metric, of_ranks in whole.items():
                scores[metric].append(ranks.scores(of_ranks))
        hits, held_out = find_hits(ranked, hidden[rows], length)
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
        tails=levels,
        users=describe_users(
            train, history, target, getattr(heldout, "groups", None), held_out_ids(split, on)
        ),
        catalogue={
            f"{measure}@{cutoff}": formula(exposure[cutoff])
            for measure, formula in EXPOSURE.items()
            for cutoff in cutoffs
        },
        training=training_record(model, trained),
        losses=user_losses,
        weights=training_weights(model, user_losses),
        versions=dict(_versions()),
        data=_fingerprint(history, target),
        settings=dict(settings or {}),
    )


def parse_metric(metric: str) -> tuple[str, int | None]:
    """Return the name of a metric and its cutoff, None if there is none.

    >>> parse_metric("recall@20"), parse_metric("auc"), parse_metric("recall")
    (('recall', 20), ('auc', None), ('recall', None))
    """
    check_type("metric", metric, str, "try metric='recall@20'")
    name, sign, cutoff = metric.partition("@")
    choose("metric", name, dict.fromkeys(ALL_METRICS))
    if not sign:
        return name, None
    if name not in METRICS:
        raise ValueError(f"metric={shown(metric)}: {name} has no cutoff; try metric={name!r}")
    if not CUTOFF.fullmatch(cutoff):
        raise ValueError(f"metric={shown(metric)}: {cutoff!r} is no cutoff; try metric='{name}@20'")
    return name, int(cutoff)


def _check_model(model: Any) -> None:
    """Raise if the model cannot be asked for recommendations."""
    if isinstance(model, type):
        raise TypeError(
            f"the model is the class {model.__name__}; give a fitted one, as in "
            f"{model.__name__}().fit(split.training)"
        )
    if not callable(getattr(model, "recommend", None)):
        raise TypeError(
            f"the model is of type {type(model).__name__}, which has no recommend; give a fitted "
            "model, such as SAFER2().fit(split.training)"
        )


def _check_split(split: Any) -> None:
    """Raise if there is no training data, or are no held-out users."""
    if not hasattr(split, "train") or not any(hasattr(split, part) for part in PARTS):
        raise TypeError(
            f"the split is of type {type(split).__name__}, and has no train and test; give a "
            "Split, such as datasets.read(...).strong_generalization()"
        )


def _checked_cutoffs(k: Any) -> tuple[int, ...]:
    """Return the cutoffs in ascending order."""
    given = [k] if np.ndim(k) == 0 else check_list("k", k, f"try k={CUTOFFS}")
    if not given:
        raise ValueError(f"k is empty; give at least one cutoff, such as k={CUTOFFS}")
    found = sorted({check_integer("k", each, 1, CUTOFFS[0]) for each in given})
    if found[-1] > LARGEST_CUTOFF:
        raise ValueError(f"k is at most {LARGEST_CUTOFF:,}; try k={CUTOFFS[0]}")
    return tuple(found)


def _checked_metrics(metrics: Any) -> list[str]:
    """Return the names of the metrics, without cutoffs."""
    given = check_list("metrics", metrics, "give a list of names, such as metrics=['recall']")
    if not given:
        raise ValueError("metrics is empty; give at least one name, such as metrics=['recall']")
    for each in given:
        choose("metric", each, dict.fromkeys(ALL_METRICS))
    return given


def _checked_users(heldout: Any, on: str, num_items: int) -> tuple[Csr, Csr]:
    """Return history and target of the held-out users."""
    if heldout is None:
        raise ValueError(f"the split has no {on} users; split with a {on} set, or change `on`")
    history, target = (
        check_matrix(
            getattr(heldout, name), name=f"{on}.{name}", columns=num_items, allow_empty=True
        )
        for name in ("history", "target")
    )
    if target.nnz == 0:
        raise ValueError(
            f"none of the {target.num_rows} {on} users has held-out items, so there is "
            "nothing to measure; hide more of their interactions"
        )
    if history.num_rows != target.num_rows:
        raise ValueError(
            f"{on}.history has {history.num_rows} rows and {on}.target {target.num_rows}; "
            "give both one row per user"
        )
    both = history.to_scipy().astype(bool).multiply(target.to_scipy().astype(bool)).tocoo()
    if both.nnz:
        raise ValueError(
            f"{both.nnz:,} entries of {on}.target are in {on}.history as well, such as row "
            f"{both.row[0]}, item {both.col[0]}; items of the history are not ranked, so remove "
            "them from one of the two"
        )
    return history, target


@cache
def _versions() -> Mapping[str, str]:
    """Return the versions of the software; the metadata of packages is read once."""
    found = {name: version(name) for name in ("numpy", "scipy", "safecf")}
    return {"python": platform.python_version(), **found, "kernels": _core.isas()[0]}


def _fingerprint(history: Csr, target: Csr) -> str:
    """Return a checksum of the held-out users' histories and held-out items."""
    found = hashlib.sha256()
    for matrix in (history, target):
        found.update(np.array(matrix.shape, dtype="<i8").tobytes())
        found.update(matrix.indptr.astype("<i8").tobytes())
        found.update(matrix.indices.astype("<i4").tobytes())
    return found.hexdigest()
