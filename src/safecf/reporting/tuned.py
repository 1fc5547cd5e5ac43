"""From what `tune` returns to the records that the page shows."""

from typing import TYPE_CHECKING

from safecf.reporting.content import TrialPoint, Tuned, TunedModel

if TYPE_CHECKING:
    from safecf.tuning import Tuning
    from safecf.tuning.search import Search

NAN = (float("nan"), float("nan"))


def tuned(tuning: "Tuning", styles: dict[str, int]) -> Tuned:
    """Return the trials of all models, with the styles of their evaluations."""
    objective = tuning.objective
    return Tuned(
        metric=objective.metric,
        level=objective.level,
        kind=objective.kind,
        pick=str(tuning.pick),
        users=tuning.searches[0].task.split.validation.target.shape[0],
        models=[
            _model(each, best.number, styles.get(each.tuned_name, place))
            for place, (each, best) in enumerate(
                zip(tuning.searches, tuning.picked, strict=True), start=1
            )
        ],
    )


def _model(search: "Search", best: int, style: int) -> TunedModel:
    return TunedModel(
        model=search.name,
        style=style,
        trials=[
            TrialPoint(t.number, t.state, t.epochs, *(t.scores or NAN), t.options)
            for t in search.trials
        ],
        best=best,
        front=[each.number for each in search.front],
        ranges={name: str(each) for name, each in search.space.items()},
        edges=search.edges(search.trials[best]),
        minutes=sum(each.seconds for each in search.trials) / 60,
    )
