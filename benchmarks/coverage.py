"""How often bootstrap intervals of tails hold the true value, by the number of users."""

from collections.abc import Callable

import numpy as np

from benchmarks.harness import Found, Size
from safecf.defaults import CONFIDENCE, LEVEL
from safecf.measures.bootstrap import ENOUGH, percentile_interval, resample
from safecf.measures.tails import Floats, tail_mean

Population = Callable[[np.random.Generator, int], Floats]


def like_recall(rng: np.random.Generator, size: int) -> Floats:
    """Hits among 5 to 20 held-out items: few values, and 0 for 10 % of the users."""
    held_out = np.minimum(4 + rng.geometric(0.1, size), 20)
    return np.asarray(rng.binomial(held_out, rng.beta(1.5, 2.5, size)) / held_out)


POPULATIONS: dict[str, Population] = {
    "recall": like_recall,
    # any value, but 0 for 5 % of the users
    "ndcg": lambda rng, size: np.where(rng.random(size) < 0.05, 0.0, rng.beta(1.3, 2.4, size)),
    # any value, mostly near 1, with a long lower tail
    "auc": lambda rng, size: rng.beta(8.0, 1.5, size),
}
SAMPLES, DRAWS = 1000, 500
LARGE = 400_000  # users, by whom the true value is computed
USERS = (4, 15, 30, 60)  # of whom the worst-off share LEVEL is measured
INSIDE = (ENOUGH // 2, ENOUGH, 5 * ENOUGH // 2)  # users in the tail
LEVELS = (0.1, LEVEL, 1.0)


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


def measure(size: Size) -> Found:
    """Draw users from three populations, and count the intervals that hold the true value."""
    samples, draws = size.count(SAMPLES, 20), size.count(DRAWS, 50)
    setting = {"samples": samples, "draws": draws, "large": LARGE, "enough": ENOUGH}
    setting |= {"users": USERS, "inside": INSIDE, "confidence": CONFIDENCE, "level": LEVEL}
    yield "setting", setting | {"error": (0.09 / samples) ** 0.5}
    cases = [(users * LEVEL, users, LEVEL) for users in USERS]
    cases += [(inside, round(inside / level), level) for inside in INSIDE for level in LEVELS]
    for tail, users, level in cases:
        shares = {
            name: covered(population, users, level, samples, draws)
            for name, population in POPULATIONS.items()
        }
        yield "shares", {"tail": tail, "users": users, "level": level, **shares}
