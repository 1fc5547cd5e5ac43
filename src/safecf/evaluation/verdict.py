"""The verdict on a model, in one sentence that claims no more than the intervals do."""

import math

from safecf.evaluation.difference import Difference

LIFTS, LOWERS, SAME = "lifts", "lowers", "makes no clear difference to"


def sentence(model: str, baseline: str, tail: Difference, mean: Difference) -> str:
    """Say what the model does for the tail, and for the mean, compared with the baseline.

    A rise or a fall is one whose interval excludes zero. The change is in percent, and in units of
    the metric where the baseline is zero.

    >>> sentence("SAFER2", "iALS", tail, mean)
    'SAFER2 lifts the worst-off 30 % by 8.6 % [5.1, 12.0] and the average by 1.9 % [0.4, 3.3]
    (recall@20, compared with iALS)'
    """
    verb, again = _verb(tail), _verb(mean)
    said = f"{model} {verb} {_whom(tail)} {_amount(tail)}"
    if tail.level != 1:
        if verb == again:
            said += " and the average " if verb != SAME else " nor to the average "
        else:
            said += (
                f"{', but' if {verb, again} == {LIFTS, LOWERS} else ' and'} {again} the average "
            )
        said += _amount(mean)
    return f"{said} ({tail.metric}, compared with {baseline})"


def _verb(change: Difference) -> str:
    _, low, high = change.absolute
    if low > 0:
        return LIFTS
    return LOWERS if high < 0 else SAME


def _whom(change: Difference) -> str:
    return "the average" if change.level == 1 else f"the worst-off {100 * change.level:g} %"


def _amount(change: Difference) -> str:
    """Return "by 8.6 % [5.1, 12.0]", or "(+0.2 % [-1.0, 1.4])" where the direction is not clear."""
    numbers, digits, unit = change.relative, 1, " %"
    if not all(math.isfinite(number) for number in numbers):
        numbers, digits, unit = change.absolute, 4, ""
    seen, low, high = numbers
    if (verb := _verb(change)) == LOWERS:
        seen, low, high = -seen, -high, -low
    interval = f"[{low:.{digits}f}, {high:.{digits}f}]"
    if verb == SAME:
        return f"({seen:+.{digits}f}{unit} {interval})"
    return f"by {seen:.{digits}f}{unit} {interval}"
