"""`python -m benchmarks fingerprints`: digests of what every model finds, to compare versions.

Take them before a change that should change no result, and compare after it, on one machine:

    python -m benchmarks fingerprints --write before.json
    python -m benchmarks fingerprints --compare before.json
"""

import hashlib
import inspect
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import safecf

# By label: the class, its options, and what `fit` is given beside the matrix.
EXACT, CG = {"solver": "exact"}, {"solver": "cg", "tolerance": 1e-6}
RUNS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "IALS": ("IALS", {}, ()),
    "IALS exact": ("IALS", EXACT, ()),
    "IALS cg": ("IALS", CG, ()),
    "IALS tight": ("IALS", {"tolerance": 1e-6}, ()),
    "IALSPP": ("IALSPP", {"block_size": 7}, ()),
    "ERMMF": ("ERMMF", {"normalisation": 0.7}, ("user_weight",)),
    "CVaRMF sgd": ("CVaRMF", {"iterations": 30}, ()),
    "CVaRMF adam": (
        "CVaRMF",
        {"iterations": 30, "optimizer": "adam", "step_size": 0.01},
        ("user_weight",),
    ),
    **{
        f"SAFER2 {kernel}": ("SAFER2", {"kernel": kernel}, ()) for kernel in ("gaussian", "uniform")
    },
    "SAFER2 epanechnikov": ("SAFER2", {"kernel": "epanechnikov", "bandwidth": 0.7}, ()),
    "SAFER2 logistic": ("SAFER2", {"kernel": "logistic"}, ("user_weight",)),
    "SAFER2 triangular": ("SAFER2", {"kernel": "triangular"}, ()),
    "SAFER2 exact": ("SAFER2", EXACT, ("user_weight",)),
    "SAFER2 sampled": ("SAFER2", {"quantile_sample": 0.3}, ()),
    "SAFER2 groups": ("SAFER2", {}, ("user_groups",)),
    "SAFER2 infinite bandwidth": ("SAFER2", {"bandwidth": float("inf")}, ()),
    "SAFER2CG": ("SAFER2CG", {}, ()),
    "SAFER2PP": ("SAFER2PP", {"block_size": 16}, ("user_weight",)),
    "EASE": ("EASE", {}, ()),
}
SIZES = {"cpu": (700, 300, 40), "numpy": (60, 30, 6)}  # users, items, factors


def main(
    write: Annotated[Path | None, typer.Option(help="Write them to this JSON file.")] = None,
    compare: Annotated[Path | None, typer.Option(help="Compare with this JSON file.")] = None,
) -> None:
    """Train every model and solver, and write or compare digests of all that they have found."""
    found = {
        f"{label} on {backend}": fingerprint(*RUNS[label], backend)
        for label in RUNS
        for backend in SIZES
    }
    if write is not None:
        write.write_text(json.dumps(found, indent=1))
    if compare is not None:
        before = json.loads(compare.read_text())
        for label, digests in found.items():
            differ = [key for key, value in digests.items() if before[label].get(key) != value]
            typer.echo(f"{label}: {', '.join(differ) or 'the same bits'}")
        if found != before:
            raise typer.Exit(1)


def fingerprint(
    name: str, options: dict[str, Any], given: tuple[str, ...], backend: str
) -> dict[str, str]:
    """Return digests of the factors, the weights, the history and the answers of a model."""
    users, items, factors = SIZES[backend]
    rng = np.random.default_rng(5)
    popular = rng.pareto(1.5, items) + 0.2
    likes = rng.random((users, items)) < 0.08 * popular * rng.uniform(0.3, 2, (users, 1))
    matrix = sp.csr_matrix(likes * rng.choice([1.0, 2.0, 0.5], likes.shape), dtype=np.float32)
    more = {"user_weight": rng.choice([0.0, 1.0, 2.5], users), "user_groups": np.arange(users) % 5}
    kind = getattr(safecf, name)
    usual = {"factors": factors, "iterations": 6, "random_state": 1, "backend": backend}
    known = inspect.signature(kind).parameters
    model = kind(**({key: usual[key] for key in usual if key in known} | options))
    model.fit(matrix, show_progress=False, **{key: more[key] for key in given})
    everybody = np.arange(users)
    held = {key: getattr(model, key, None) for key in ("user_factors", "item_factors")}
    held["user_weights"] = getattr(model, "user_weights", None)
    held["history"] = [
        {key: value for key, value in asdict(record).items() if key != "seconds"}
        for record in getattr(model, "history", [])
    ]
    held["recommend"] = model.recommend(everybody, matrix, N=10)
    held["recommend one"] = [model.recommend(u, matrix[u], N=10) for u in (0, 7)]
    held["similar"] = model.similar_items(np.arange(items), N=5)
    return {key: _digest(value) for key, value in held.items() if value is not None}


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray):
        content = repr((value.shape, value.dtype.str)).encode() + value.tobytes()
    elif isinstance(value, tuple | list):
        content = "".join(map(_digest, value)).encode()
    else:
        content = repr(value).encode()
    return hashlib.sha256(content).hexdigest()[:16]
