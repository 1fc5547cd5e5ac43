"""`over_splits`: the evaluations of one model on several splits as one evaluation."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.checks import check_list, check_type
from safecf.evaluation.profile import UserProfile
from safecf.evaluation.result import Evaluation


def over_splits(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Put evaluations of one model on several splits together, each trained on its own split.

    A user appears once in every split that holds the user out, recognised by the id. Measures of
    the catalogue are averaged; the record of training is that of the first split. One evaluation is
    returned as it is.

    >>> splits = log.repeated_strong_generalization(heldout=1000, repeats=10)
    >>> found = over_splits([evaluate(model.fit(each.training), each) for each in splits])
    >>> found.tail("recall@20", 0.3), found.interval("recall@20", 0.3)
    """
    evaluations = check_list("evaluations", evaluations, "give one evaluation for every split")
    if not evaluations:
        raise ValueError("there is no evaluation; give one for every split")
    for each in evaluations:
        check_type("an entry of evaluations", each, Evaluation, "give what evaluate returns")
    first: Evaluation = evaluations[0]
    if len(evaluations) == 1:
        return first
    for place, each in enumerate(evaluations):
        _check(first, each, place)
    users = [each.users for each in evaluations]
    sizes = [len(each.target_count) for each in users]
    everybody: dict[str, Any] = {
        name: _joined([getattr(each, name) for each in users])
        for name in UserProfile.__dataclass_fields__
    }
    return replace(
        first,
        scores={m: np.concatenate([each.scores[m] for each in evaluations]) for m in first.scores},
        users=UserProfile(**everybody),
        catalogue={
            name: float(np.mean([each.catalogue[name] for each in evaluations]))
            for name in first.catalogue
        },
        losses=_joined([each.losses for each in evaluations]),
        weights=_joined([each.weights for each in evaluations]),
        data=hashlib.sha256("".join(each.data for each in evaluations).encode()).hexdigest(),
        splits=np.repeat(np.arange(len(sizes)), sizes),
    )


def _check(first: Evaluation, other: Evaluation, place: int) -> None:
    """Raise unless both are of one model, by the same metrics, on one split each, with ids."""
    where = f"evaluation {place} of {first.model!r}"
    if other.model != first.model:
        raise ValueError(f"{where} is of {other.model!r}; give those of one model, one per split")
    if other.splits is not None:
        raise ValueError(f"{where} is already over several splits; give one per split")
    if other.users.ids is None:
        raise ValueError(
            f"{where} has no user ids, by which users of several splits are recognised; evaluate "
            "on a Split with user_ids"
        )
    if first.users.ids is not None and other.users.ids.dtype != first.users.ids.dtype:
        raise ValueError(
            f"{where} has other user ids than the first, {other.users.ids.dtype} and not "
            f"{first.users.ids.dtype}; read all splits from the same data"
        )
    if (
        other.scores.keys() != first.scores.keys()
        or other.catalogue.keys() != first.catalogue.keys()
    ):
        raise ValueError(f"{where} has other metrics than the first; use the same k and metrics")


def _joined(arrays: list[Any]) -> NDArray[Any] | None:
    """Concatenate; None if one of them is None."""
    return None if any(each is None for each in arrays) else np.concatenate(arrays)
