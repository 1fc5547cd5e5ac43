"""The verdict on a model, in one sentence that claims no more than the intervals do."""

from safecf.evaluation.difference import BETTER, UNCLEAR, WORSE, Difference

VERBS = {BETTER: "lifts", WORSE: "lowers", UNCLEAR: "makes no clear difference to"}


def sentence(model: str, baseline: str, tail: Difference, mean: Difference) -> str:
    """Say what the model does for the tail, and for the mean, compared with the baseline.

    A rise or a fall is one whose interval excludes zero. The change is in percent, and in units of
    the metric where the baseline is zero.

    >>> sentence("SAFER2", "iALS", tail, mean)
    'SAFER2 lifts the worst-off 30 % by 8.6 % [5.1, 12.0] and the average by 1.9 % [0.4, 3.3]
    (recall@20, compared with iALS)'
    """
    said = f"{model} {VERBS[tail.outcome]} {_whom(tail)}{_amount(tail)}"
    if tail.level != 1:
        said += f"{_link(tail.outcome, mean.outcome)} the average{_amount(mean)}"
    return f"{said} ({tail.metric}, compared with {baseline})"


def _link(tail: str, mean: str) -> str:
    """Lead over from the tail to the mean."""
    comma = "," if tail == UNCLEAR else ""
    if tail == mean:
        return f"{comma} nor to" if tail == UNCLEAR else " and"
    if {tail, mean} == {BETTER, WORSE}:
        return f", but {VERBS[mean]}"
    return f"{comma} and {VERBS[mean]}"


def _whom(change: Difference) -> str:
    return "the average" if change.level == 1 else f"the worst-off {100 * change.level:g} %"


def _amount(change: Difference) -> str:
    """Return " by 8.6 % [5.1, 12.0]", or ", +0.2 % [-1.0, 1.4]" if the direction is not clear."""
    numbers, digits, unit = change.relative, 1, " %"
    if not change.has_lift:
        numbers, digits, unit = change.absolute, 4, ""
    seen, low, high = numbers
    if change.outcome == WORSE:
        seen, low, high = -seen, -high, -low
    interval = f"[{low:.{digits}f}, {high:.{digits}f}]"
    if change.outcome == UNCLEAR:
        return f", {seen:+.{digits}f}{unit} {interval}"
    return f" by {seen:.{digits}f}{unit} {interval}"
