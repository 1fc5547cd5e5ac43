"""`Comparison`: two or more models on the same users."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from safecf.checks import check_integer, check_list
from safecf.defaults import CONFIDENCE, LEVEL, RESAMPLES, SEED
from safecf.errors import choose
from safecf.evaluation.difference import Difference, paired_differences, verdict
from safecf.evaluation.floors import Floor, find_floor
from safecf.evaluation.json_records import (
    COMPARISON,
    Record,
    check_format,
    sealed,
    to_json,
    unsealed,
)
from safecf.evaluation.repeated import over_splits
from safecf.evaluation.result import Evaluation
from safecf.measures.bootstrap import Draws
from safecf.measures.tails import Floats, check_levels

Key = str | int | Evaluation

# Shares of worst-off users at which the curve of the lift is computed.
CURVE = (0.02, 0.04, 0.06, 0.08, *(place / 20 for place in range(2, 21)))


def curve_levels(tails: Iterable[float], level: float) -> list[float]:
    """Return the levels of the lift's curve, with those that tables show."""
    return sorted({*CURVE, *tails, level})


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models beside a baseline, with paired bootstrap intervals; made by `compare`.

    Every interval comes from `resamples` draws of users with replacement, the same users for both
    models, and holds the middle share `confidence` of the draws. Over several splits, a user is
    drawn with all appearances. It covers the choice of users, not the randomness of training: for
    that, train with several seeds.
    """

    baseline: Evaluation
    others: list[Evaluation]
    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE
    seed: int = SEED
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def draws(self) -> Draws:
        """How intervals are drawn."""
        return Draws(self.resamples, self.confidence, self.seed)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that all models were evaluated by."""
        return tuple(
            metric
            for metric in self.baseline.metrics
            if all(metric in other.scores for other in self.others)
        )

    def differences(
        self, other: Key, metric: str, levels: Iterable[float] | None = None
    ) -> list[Difference]:
        """Return one difference per level (default: the baseline's `tails`)."""
        evaluation = self._find(other)
        wanted = self.baseline.tails if levels is None else check_levels(levels)
        key = (evaluation.model, metric, wanted)
        if key not in self._cache:
            self._cache[key] = paired_differences(
                self.baseline, evaluation, metric, wanted, self.draws
            )
        return list(self._cache[key])

    def difference(self, other: Key, metric: str, level: float) -> Difference:
        """Return the difference at one level."""
        tails = self.baseline.tails
        if level in tails:
            return self.differences(other, metric)[tails.index(level)]
        return self.differences(other, metric, [level])[0]

    def relative_curve(
        self, other: Key, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return levels, lift in percent, and the low and high ends of its interval."""
        found = self.differences(other, metric, levels)
        lift, low, high = np.array([each.relative for each in found]).T
        return np.array([each.level for each in found]), lift, low, high

    def verdict(self, other: Key, metric: str | None = None, level: float = LEVEL) -> str:
        """Write one sentence on what the other model does for the worst-off, and on average.

        The metric is the first one by default. Where its tail is at a `floor`, the worst-off are
        compared by the metric that is shown beside it.
        """
        name, metric = self._find(other).model, self.metrics[0] if metric is None else metric
        floor = self.floor(metric, level)
        measured = metric if floor is None else floor.beside or metric
        tail, mean = self.difference(other, measured, level), self.difference(other, metric, 1.0)
        return verdict(name, self.baseline.model, tail, mean)

    def floor(self, metric: str | None = None, level: float = LEVEL) -> Floor | None:
        """Return the `Floor` if the tail of the metric is zero with every model, else None."""
        chosen = self.metrics[0] if metric is None else metric
        return find_floor([self.baseline, *self.others], chosen, level)

    def summary(self, metric: str | None = None, level: float = LEVEL) -> str:
        """Return the verdicts on all other models, one per line, below the floor if there is one.

        >>> print(comparison.summary("recall@20", 0.3))
        recall@20 is 0 for all of the worst-off 30 %, whatever the model; ndcg, over the whole
        ranking, is shown beside it
        SAFER2 lifts the worst-off 30 % by 4.0 % [2.9, 5.2] (ndcg) and the average by 1.1 % [0.2,
        2.0] (recall@20, compared with IALS)
        """
        floor = self.floor(metric, level)
        verdicts = [self.verdict(other, metric, level) for other in self.others]
        return "\n".join([*([] if floor is None else [str(floor)]), *verdicts])

    def to_dict(self, metrics: Sequence[str] | None = None, level: float = LEVEL) -> dict[str, Any]:
        """Return everything as JSON values, with all numbers that a report shows.

        `differences` has all metrics, or those given, at the levels of `tails`, at `level`, and at
        those of the lift's curve; `verdicts` and `floors` are at `level`.
        """
        chosen = self.metrics
        if metrics is not None:
            chosen = tuple(check_list("metrics", metrics, "give names, such as ['recall@20']"))
        levels = curve_levels(self.baseline.tails, level)
        draws = asdict(self.draws)
        found = to_json(
            {
                "format": COMPARISON,
                "baseline": self.baseline.model,
                **draws,
                "evaluations": [
                    each.to_dict(level, **draws) for each in (self.baseline, *self.others)
                ],
                "differences": {
                    other.model: {m: self.differences(other, m, levels) for m in chosen}
                    for other in self.others
                },
                "verdicts": {
                    other.model: {m: self.verdict(other, m, level) for m in chosen}
                    for other in self.others
                },
                "floors": {m: str(floor) for m in chosen if (floor := self.floor(m, level))},
            }
        )
        return sealed(found)

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Read what `to_dict` returned; differences are computed again when asked for."""
        given = Record(record, "comparison")
        check_format(given, COMPARISON)
        evaluations = [Evaluation.from_dict(each) for each in given.list("evaluations", dict)]
        baseline = given.get("baseline", str)
        kinds = {"resamples": int, "confidence": float, "seed": int}
        draws = [given.get(name, kind) for name, kind in kinds.items()]
        try:
            found = compare(evaluations, baseline, *draws)
        except ValueError as error:
            raise given.error(str(error)) from None
        unsealed(given)
        return cls(found.baseline, found.others, *draws)

    def __repr__(self) -> str:
        others = ", ".join(repr(other.model) for other in self.others)
        return f"Comparison({others} compared with {self.baseline.model!r})"

    def _find(self, other: Key) -> Evaluation:
        if isinstance(other, Evaluation):
            other = other.model
        if isinstance(other, int) and not isinstance(other, bool):
            count = len(self.others)
            if not -count <= other < count:
                raise ValueError(
                    f"there is no model {other}: {count} are compared with the baseline, from 0 "
                    "on; try 0"
                )
            return self.others[other]
        return choose("model", other, {each.model: each for each in self.others})


def compare(
    evaluations: Sequence[Evaluation | Sequence[Evaluation]],
    baseline: int | str = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Comparison:
    """Compare evaluations of the same users with one of them, given by position or by name.

    Several evaluations of a model, one per split, are put together by `over_splits`.

    >>> comparison = compare([evaluate(ials, split), evaluate(safer2, split)])
    >>> print(comparison.verdict("SAFER2"))
    >>> compare([[evaluate(model.fit(each.training), each) for each in splits] for model in models])
    """
    Draws(resamples, confidence, seed)  # raises if they make no sense
    remedy = "give what evaluate returns, or a list of it, one per split"
    models = [
        each
        if isinstance(each, Evaluation)
        else over_splits(check_list("an entry of evaluations", each, remedy))
        for each in check_list("evaluations", evaluations, "give a list of at least 2, to compare")
    ]
    if len(models) < 2:
        given = "is 1 evaluation" if models else "are no evaluations"
        raise ValueError(f"there {given}; give at least 2 to compare")
    names = [each.model for each in models]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two evaluations are called {name!r}; give evaluate a name for each")
    if isinstance(baseline, str):
        choose("baseline", baseline, dict.fromkeys(names))
        baseline = names.index(baseline)
    elif check_integer("baseline", baseline, -len(names), 0) >= len(names):
        raise ValueError(
            f"baseline={baseline}, but there are {len(names)} evaluations, from 0 on; "
            "try baseline=0"
        )
    chosen = models[baseline]
    others = [each for each in models if each is not chosen]
    for other in others:
        if other.data != chosen.data or not np.array_equal(
            other.users.target_count, chosen.users.target_count
        ):
            raise ValueError(
                f"{other.model!r} and {chosen.model!r} were not evaluated on the same users and "
                "held-out items, so there are no pairs; evaluate both on the same split"
            )
    comparison = Comparison(chosen, others, resamples, confidence, seed)
    if not comparison.metrics:
        raise ValueError("the evaluations have no metric in common; use the same k and metrics")
    return comparison
