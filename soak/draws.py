"""Random data and random settings of models, for attacks to choose from."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from safecf.defaults import AUTO
from safecf.models import MODELS, Recommender, options
from safecf.models.mult_vae import MultVAE

# What numbers without a bound are drawn from, log-uniformly.
TINY, HUGE = 1e-30, 1e30
MODERATE = 1e-4, 1e1
TOO_MANY = 100_000  # factors: d x d numbers are beyond the memory
# The whole range would only cost time or memory: what these options are drawn from, mostly.
FEASIBLE = {"factors": 24, "iterations": 6, "batch_size": 16, "block_size": 24, "num_threads": 4}


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def random_matrix(rng: np.random.Generator, *, hostile: bool = True) -> sp.csr_matrix:
    """Return a small matrix of interactions, with at least one.

    It may have one user, one item, empty rows and columns, repeated rows and columns, users of one
    item, all pairs, and weights that are even or spread over many powers of ten.
    """
    users, items = (int(rng.choice([1, 2, 3, 8, 17, 40])) for _ in range(2))
    share = rng.choice([0.05, 0.2, 0.5, 1.0])
    likes = rng.random((users, items)) < share
    for _ in range(rng.integers(3)):
        likes[rng.integers(users)] = likes[rng.integers(users)]
        likes[:, rng.integers(items)] = likes[:, rng.integers(items)]
        likes[rng.integers(users)] = np.arange(items) == rng.integers(items)
        likes[rng.integers(users)] &= rng.random() < 0.5
    if not likes.any():
        likes[rng.integers(users), rng.integers(items)] = True
    return sp.csr_matrix(likes * random_weights(rng, likes.shape, hostile=hostile))


def random_weights(
    rng: np.random.Generator, shape: tuple[int, ...], *, hostile: bool
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return ones, a few levels, or weights over up to 68 powers of ten."""
    kind = rng.choice(["ones", "levels", "spread"], p=[0.5, 0.25, 0.25])
    if kind == "ones":
        return np.ones(shape, dtype=np.float32)
    if kind == "levels":
        return rng.choice([0.5, 1, 2, 40], size=shape).astype(np.float32)
    powers = rng.choice([1, 4, 20, 34]) if hostile else 1
    return (10.0 ** rng.uniform(-powers, min(powers, 37), shape)).astype(np.float32)


def random_options(
    rng: np.random.Generator, kind: type[Recommender], wild: float = 0.2
) -> dict[str, Any]:
    """Draw every option by its rule: with probability `wild` from the whole range of it."""
    drawn: dict[str, Any] = {}
    for name, rule in options.rules(kind).items():
        default = inspect.signature(kind).parameters[name].default
        whole = bool(rng.random() < wild)
        if name == "random_state":
            drawn[name] = int(rng.integers(2**63 - 1 if whole else 1000))
        elif name == "device":
            drawn[name] = "cpu"
        elif rng.random() < 0.8 or name in FEASIBLE:
            drawn[name] = _drawn(rng, name, rule, default, whole=whole)
    return drawn


def _drawn(rng: np.random.Generator, name: str, rule: Any, default: Any, *, whole: bool) -> Any:
    match rule:
        case options.Auto():
            return AUTO if rng.random() < 0.3 else _drawn(rng, name, rule.rule, 0.1, whole=whole)
        case options.Name():
            # PyTorch's rounding may depend on who else is asked for
            return rng.choice([each for each in rule.table if each != "torch"]).item()
        case options.Integer():
            low, high = 1, FEASIBLE.get(name, 8)
            if whole and rng.random() < 0.1:
                low, high = (TOO_MANY if name == "factors" else 1), rule.high
            return max(rule.low, int(log_uniform(rng, low, high + 1)) - (rule.low == 0))
        case options.Number():
            return _number(rng, rule, whole=whole)
    assert rule is options.check_flag, f"how to draw {name}?"
    return bool(rng.integers(2))


def _number(rng: np.random.Generator, rule: options.Number, *, whole: bool) -> float:
    """Draw from an interval, its ends included where they are allowed."""
    if whole and rng.random() < 0.2:
        ends = [end for end, kind in zip((rule.low, rule.high), rule.ends, strict=True)
                if kind in "[]"]  # fmt: skip
        ends += [np.nextafter(rule.low, math.inf), np.nextafter(rule.high, -math.inf)]
        return float(rng.choice(ends))
    if rule.high == 1 and rng.random() < 0.7:
        return float(rng.uniform(max(rule.low, 1e-3), 1 - 1e-3))
    low, high = (TINY, HUGE) if whole else MODERATE
    drawn = log_uniform(rng, max(low, rule.low), min(high, rule.high))
    return float(np.clip(drawn, rule.low, np.nextafter(rule.high, -math.inf)))


def random_model(
    rng: np.random.Generator, wild: float = 0.2, fixed: Mapping[str, Any] | None = None
) -> Recommender:
    """Return a model of the catalogue with random options, those of `fixed` excepted."""
    kinds = [kind for kind in MODELS.values() if kind is not MultVAE]
    kind = kinds[rng.integers(len(kinds))]
    drawn = random_options(rng, kind, wild)
    return kind(**drawn | {name: value for name, value in (fixed or {}).items() if name in drawn})
