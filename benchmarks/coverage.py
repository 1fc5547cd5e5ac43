"""How often bootstrap intervals of tails hold the true value, by the number of users."""

from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from benchmarks import report
from safecf.defaults import CONFIDENCE, LEVEL
from safecf.measures.bootstrap import ENOUGH, percentile_interval, resample
from safecf.measures.tails import Floats, tail_mean

Population = Callable[[np.random.Generator, int], Floats]

LARGE = 400_000  # users, by whom the true value is computed
USERS = (4, 15, 30, 60)  # of whom the worst-off share LEVEL is measured
INSIDE = (ENOUGH // 2, ENOUGH, 5 * ENOUGH // 2)  # users in the tail
LEVELS = (0.1, LEVEL, 1.0)


def like_recall(rng: np.random.Generator, size: int) -> Floats:
    """Hits among 5 to 20 held-out items: few values, and 0 for 10 % of the users."""
    held_out = np.minimum(4 + rng.geometric(0.1, size), 20)
    return np.asarray(rng.binomial(held_out, rng.beta(1.5, 2.5, size)) / held_out)


def like_ndcg(rng: np.random.Generator, size: int) -> Floats:
    """Any value, but 0 for 5 % of the users."""
    return np.where(rng.random(size) < 0.05, 0.0, rng.beta(1.3, 2.4, size))


def like_auc(rng: np.random.Generator, size: int) -> Floats:
    """Any value, mostly near 1, with a long lower tail."""
    return rng.beta(8.0, 1.5, size)


POPULATIONS: dict[str, Population] = {
    "recall": like_recall,
    "nDCG": like_ndcg,
    "AUC": like_auc,
}


def covered(
    population: Population, users: int, level: float, samples: int, resamples: int
) -> float:
    """Share of samples of so many users whose interval of the tail mean holds the true one."""
    truth = tail_mean(population(np.random.default_rng(0), LARGE), level)
    inside = 0
    for sample in range(samples):
        scores = population(np.random.default_rng([1, sample]), users)
        (low,), (high,) = percentile_interval(resample(scores, [level], resamples, seed=sample))
        inside += bool(low <= truth <= high)
    return inside / samples


def spread(shares: list[float]) -> str:
    """Return the least and the largest share, in percent.

    >>> spread([0.941, 0.9, 0.95])
    '90 to 95 %'
    """
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"


def main(
    samples: Annotated[int, typer.Option(help="Samples of users.")] = 1000,
    resamples: Annotated[int, typer.Option(help="Bootstrap draws of each.")] = 500,
) -> None:
    """Draw users from three populations, and count the intervals that hold the true value."""

    def row(users: int, level: float) -> list[float]:
        found = [covered(p, users, level, samples, resamples) for p in POPULATIONS.values()]
        print(users, level, found, flush=True)
        return found

    few = [(users, row(users, LEVEL)) for users in USERS]
    many = [
        (inside, users, level, row(users, level))
        for inside in INSIDE
        for level in LEVELS
        for users in [round(inside / level)]
    ]
    by_users = [f"{spread(shares)} of the samples of {users} users" for users, shares in few]
    by_tail = [
        f"{spread([share for each, *_, shares in many if each == inside for share in shares])} "
        f"with {inside} users"
        for inside in INSIDE
    ]
    page = report.write(
        "coverage",
        "How often intervals hold the true value",
        f"The {100 * CONFIDENCE:.0f} % interval of the worst-off {100 * LEVEL:.0f} % holds the "
        f"true value in {', '.join(by_users)}. By the users in the tail, at all levels: "
        f"{', '.join(by_tail)}. `caution` asks for {ENOUGH}.",
        f"Percentile bootstrap intervals with {resamples:,} draws, as `Evaluation.interval` has "
        f"them, of {samples:,} samples of users from each of three populations, whose scores look "
        f"like recall, nDCG and AUC. The true value is the tail mean of {LARGE:,} users. The "
        "standard error of a share of 0.9 is "
        f"{100 * np.sqrt(0.09 / samples):.1f} percentage points.",
        report.table(
            ["users in the tail", "users", "level", *POPULATIONS],
            [
                [f"{inside:g}", str(users), f"{level:g}", *(f"{each:.3f}" for each in shares)]
                for inside, users, level, shares in [
                    *((users * LEVEL, users, LEVEL, shares) for users, shares in few),
                    *many,
                ]
            ],
        ),
    )
    print(page.read_text())
