"""`Source`: the evaluations that a page is made of, with or without a comparison."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from safecf.checks import check_list, check_type
from safecf.errors import choose
from safecf.evaluation.comparison import Comparison, compare, curve_levels
from safecf.evaluation.floors import Floor, find_floor
from safecf.evaluation.groups import Groups
from safecf.evaluation.result import Evaluation
from safecf.measures.bootstrap import Draws, Estimate
from safecf.measures.tails import check_level


@dataclass(frozen=True)
class Source:
    """Evaluations, the baseline first, with the metric and the level that the page opens with.

    `metrics` are those for which all models have scores, `unscored` the others.
    """

    evaluations: list[Evaluation]
    comparison: Comparison | None
    metrics: list[str]
    unscored: list[str]
    metric: str
    level: float

    @property
    def levels(self) -> list[float]:
        """The levels that tables show: those evaluated, that of the page, and 1."""
        return sorted({*self.evaluations[0].tails, self.level, 1.0})

    @property
    def curve_levels(self) -> list[float]:
        """The levels that curves are drawn at."""
        return curve_levels(self.levels, self.level)

    @property
    def baseline(self) -> str | None:
        """The name of the model that the others are compared with."""
        return None if self.comparison is None else self.comparison.baseline.model

    @property
    def headline(self) -> str:
        """The model other than the baseline that serves the worst-off best."""
        others = self.evaluations[1:] or self.evaluations
        if not self.metric:
            return others[0].model
        floor = self.floor(self.metric)
        metric = self.metric if floor is None else floor.beside or self.metric
        return max(others, key=lambda each: each.tail(metric, self.level)).model

    @property
    def styles(self) -> dict[str, int]:
        """The style of each model: 0 for the baseline, 1 for the headline, then the rest."""
        names = [each.model for each in self.evaluations if each.model != self.headline]
        if self.comparison is None:
            return {self.headline: 1}
        ordered = [names[0], self.headline, *names[1:]]
        return {model: style for style, model in enumerate(ordered)}

    @property
    def draws(self) -> Draws:
        """How intervals are drawn: as in the comparison, if there is one."""
        return Draws() if self.comparison is None else self.comparison.draws

    def floor(self, metric: str) -> Floor | None:
        """Return the floor if the tail of the metric is zero with every model."""
        return find_floor(self.evaluations, metric, self.level)

    def estimate(self, evaluation: Evaluation, metric: str, level: float) -> Estimate:
        """Return a tail mean with its interval."""
        return evaluation.estimate(metric, level, self.draws)

    def groups(self, evaluation: Evaluation, metric: str) -> Groups:
        """Return the mean scores of the groups."""
        return evaluation.groups(metric, **asdict(self.draws))


def source(
    results: Comparison | Evaluation | Sequence[Evaluation], metric: str | None, level: float
) -> Source:
    """Return any kind of results as a `Source`; raise if metric or level make no sense."""
    check_level(level)
    if isinstance(results, Evaluation):
        results = [results]
    if not isinstance(results, Comparison):
        remedy = "give what evaluate or compare returns, or a list of evaluations"
        evaluations = check_list("results", results, remedy)
        if not evaluations:
            raise ValueError("there is no evaluation to report on; give at least one")
        for each in evaluations:
            check_type("an entry of results", each, Evaluation, remedy)
        comparison = compare(evaluations) if len(evaluations) > 1 else None
    else:
        comparison, evaluations = results, [results.baseline, *results.others]
    names = evaluations[0].metrics if comparison is None else comparison.metrics
    scored = [name for name in names if all(name in each.scored_metrics for each in evaluations)]
    unscored = [name for name in names if name not in scored]
    if metric is not None:
        choose("metric", metric, dict.fromkeys(names))
        if metric in unscored:
            raise ValueError(f"no user has a score for {metric!r}; choose another metric")
    return Source(
        evaluations=evaluations,
        comparison=comparison,
        metrics=scored,
        unscored=unscored,
        metric=metric or next(iter(scored), ""),
        level=level,
    )
