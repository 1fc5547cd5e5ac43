"""What no splitter can do is refused in one line: numbers, labels, times, and too little data."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.split import (
    per_user_holdout,
    repeated_seeds,
    repeated_strong_generalization,
    strong_generalization,
    temporal,
)
from tests.helpers import refused

RNG = np.random.default_rng(0)
MATRIX = sp.csr_matrix((RNG.random((40, 25)) < 0.3).astype(np.float32))
USERS, ITEMS = np.transpose(MATRIX.nonzero())[RNG.permutation(MATRIX.nnz)].T
TIMES = RNG.integers(1000, size=USERS.size)
NONE = USERS[:0]

SPLITTERS = {
    "strong": lambda users=USERS, items=ITEMS, **options: strong_generalization(
        users, items, **{"heldout": 5} | options
    ),
    "repeated": lambda **options: repeated_strong_generalization(
        USERS, ITEMS, **{"heldout": 5} | options
    ),
    "holdout": lambda matrix=MATRIX, **options: per_user_holdout(matrix, **options),
    "temporal": lambda users=USERS, items=ITEMS, times=TIMES, **options: temporal(
        users, items, times, **options
    ),
}
SHARES = [("holdout", "share"), ("temporal", "share"), ("strong", "holdout_share")]
SEEDS = ("strong", "holdout")
CASES = [
    *((who, {name: value}, f"{name}={value}; it has to lie between 0 and 1")
      for who, name in SHARES for value in (0, np.nan, 1.0)),
    *((who, {name: value}, f"{name}={value!r} has to be a number; try {name}=")
      for who, name in (*SHARES, ("holdout", "validation_share")) for value in ("0.2", None, True)),
    *((who, {"share": 0.5, "validation_share": 0.5}, "validation_share=0.5; ")
      for who in ("holdout", "temporal")),
    *((who, {"validation_share": -0.1}, "validation_share=-0.1; it has to be at least 0")
      for who in ("holdout", "temporal")),
    *((who, {"groups": ["a", "b"]}, "groups has shape (2,), while there are ", " users; give")
      for who in ("strong", "holdout", "temporal")),
    *((who, {"seed": -1}, "seed=-1 has to be at least 0; try seed=98765") for who in SEEDS),
    *((who, {"seed": 2**32}, "seed=4294967296 has to be below 2**32; try") for who in SEEDS),
    *((who, {"seed": 1.5}, "seed=1.5 has to be a whole number; try seed=98765") for who in SEEDS),
    *((who, {"seed": None}, "seed=None has to be a whole number; try") for who in SEEDS),
    *(("strong", {"heldout": value}, "heldout=", "give a whole number of users")
      for value in (2.5, "3", True)),
    *((who, {"heldout": 0}, "heldout=0; hold out at least 1") for who in ("strong", "repeated")),
    ("strong", {"heldout": 20, "min_interactions": 1}, "heldout=20 for validation", "lower"),
    ("strong", {"users": USERS[:3], "items": ITEMS[:2]}, "shapes (3,) and (2,); give two 1-D arr"),
    ("strong", {"items": ITEMS.astype(str)}, "items holds values of type <U"),
    ("strong", {"users": np.zeros(6, int), "items": np.arange(6), "heldout": 1},
     "3 are needed, give more data, or lower min"),
    ("repeated", {"repeats": 0}, "repeats=0 has to be at least 1; try repeats=50"),
    ("repeated", {"repeats": 10**11}, "repeats=100000000000 has to be at most 1,000,000; try"),
    ("repeated", {"seed": -1}, "seed=-1 has to be at least 0; try seed=98765"),
    ("holdout", {"min_interactions": 26}, "no user has min_interactions = 26, the most", "lower"),
    ("holdout", {"matrix": [[1, 0]]}, "matrix"),
    ("temporal", {"times": TIMES[:3]}, "timestamps has shape (3,), users "),
    ("temporal", {"times": None}, "timestamps is None; give one time per interaction"),
    ("temporal", {"times": np.where(np.arange(TIMES.size) == 4, np.nan, TIMES)},
     "timestamps, entry 4: there is no time; drop such rows"),
    ("temporal", {"users": USERS[:2], "items": ITEMS[:2],
                  "times": np.array(["NaT", "2024-01-01"], dtype="datetime64[D]")},
     "timestamps, entry 0: there is no time"),
    ("temporal", {"times": TIMES + 10**12}, "timestamps, entry 0: ", "divide milliseconds by 1000"),
    *(("temporal", {"cutoff": cutoff}, f"cutoff={cutoff}, but all ", "choose a time in be")
      for cutoff in (-1, 5000, "2024-05-01")),
    ("temporal", {"cutoff": "noon"}, "cutoff, entry 0: 'noon' is no time"),
    ("temporal", {"times": np.zeros_like(TIMES)}, "0 are left to train on, ", "change cutoff, "),
    ("temporal", {"users": NONE, "items": NONE, "times": NONE}, "there are no interactions to"),
    ("temporal", {"weights": [1, 2]}, "weights has shape (2,), while there are"),
    ("temporal", {"weights": np.zeros(TIMES.size)}, "weights holds 0.0 at 0; weights are above 0"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_arguments(case):
    who, options, *words = CASES[case]
    with refused((TypeError, ValueError), *words):
        SPLITTERS[who](**options)


def test_seeds_of_repeated_splits():
    drawn = np.random.RandomState(98765).randint(0, 100000000, size=50)
    for repeats in (1, 10, 50):
        assert repeated_seeds(repeats) == drawn[:repeats].tolist()
