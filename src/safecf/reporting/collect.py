"""From evaluations to the content of the page."""

from collections.abc import Mapping

from safecf.reporting.content import Content, described
from safecf.reporting.panels import panel
from safecf.reporting.source import Source
from safecf.reporting.training import losses, runs


def collect(
    source: Source,
    title: str | None = None,
    data_summary: Mapping[str, object] | str | None = None,
    settings: Mapping[str, object] | str | None = None,
) -> Content:
    """Compute everything that the page shows."""
    comparison, styles = source.comparison, source.styles
    evaluations = sorted(source.evaluations, key=lambda each: styles[each.model])
    distributions = [losses(each, source.level, styles[each.model]) for each in evaluations]
    return Content(
        title=title or _title(source),
        metric=source.metric,
        level=source.level,
        tails=source.levels,
        confidence=0.95 if comparison is None else comparison.confidence,
        resamples=2000 if comparison is None else comparison.resamples,
        baseline=source.baseline,
        headline=source.headline,
        styles=styles,
        panels={metric: panel(source, metric) for metric in source.metrics},
        unscored=source.unscored,
        users=len(evaluations[0].users.target_count),
        catalogue={each.model: dict(each.catalogue) for each in evaluations},
        losses=[each for each in distributions if each is not None],
        runs=runs(evaluations),
        versions={key: value for each in evaluations for key, value in each.versions.items()},
        data=described(data_summary),
        settings=_settings(source) | described(settings, "Settings"),
        fingerprint=evaluations[0].data,
    )


def _settings(source: Source) -> dict[str, str]:
    """What the evaluations say of how they came about, the baseline's word first."""
    found: dict[str, str] = {}
    for each in reversed(source.evaluations):
        found |= described(each.settings)
    return found


def _title(source: Source) -> str:
    """Name the models: `SAFER2 and ERM-MF beside iALS`."""
    names = [model for model in source.styles if model != source.baseline]
    if source.baseline is None:
        return f"How {names[0]} serves its users"
    if len(names) > 3:
        return f"{len(names)} models beside {source.baseline}"
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{listed} beside {source.baseline}"
