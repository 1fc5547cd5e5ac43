"""`tuning`: find the settings of every model on the validation users.

A grid over the paper's ranges, or `safecf.tune` over wider ones. Then the best of each model are
repeated for more epochs, with other seeds and numbers of factors, which also choose the number of
epochs; the best mean over these seeds becomes the preset.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from reproduction import presets
from reproduction.data import SEED
from reproduction.experiment import TINY, Case, Experiment, Options, Result, Row, Tables, canonical
from reproduction.tasks import range_of, trial, tuned
from safecf.errors import choose
from safecf.models.presets import Preset, Presets

TRIALS = 160  # of a whole run, for models with row solvers
KEPT, STARTS = 3, 3  # how many settings are repeated, and with how many seeds
SAME = 5e-4  # smaller differences of the objective count as none: about the noise of three seeds
NEAR = 0.1  # values so near an end of their range, as a share of it, are marked
Space = dict[str, tuple[Any, ...]]  # arguments of `range_of`


@dataclass(frozen=True)
class Search:
    """A model, the ranges of its options, and the objective for the validation users.

    `epochs` are those after which trials of a grid are scored, and the most of `tune`; `final` those
    of repetitions, the best of which is the preset's. `trials` is None for a grid. The best are
    repeated with all `sizes`, numbers of factors, or only with that of the trial.
    """

    which: str
    name: str
    model: str
    space: Space
    fixed: dict[str, Any] = field(default_factory=dict)
    epochs: tuple[int, ...] = (20,)
    final: tuple[int, ...] = (50,)
    objective: str = "mean"
    trials: int | None = None
    sizes: tuple[int, ...] = ()

    @property
    def grid(self) -> list[dict[str, Any]]:
        """All options of a grid."""
        values = [range_of(*each).grid() for each in self.space.values()]
        return [{**self.fixed, **dict(zip(self.space, of, strict=True))} for of in product(*values)]

    @property
    def budget(self) -> int:
        """The number of settings that a whole search tries."""
        return len(self.grid) if self.trials is None else self.trials

    @property
    def largest(self) -> int | None:
        """The largest number of factors; None for models that have none."""
        drawn = range_of(*self.space["factors"]).grid() if "factors" in self.space else []
        return max([*self.sizes, *drawn, self.fixed.get("factors", 0)]) or None

    def trial(self, data: str, options: dict[str, Any], seed: int = 0, final: bool = False) -> Case:
        """Return a trial of a grid, or a repetition."""
        epochs = self.final if final else self.epochs
        if presets.has_option(self.model, "iterations"):
            options = {**options, "iterations": max(epochs)}
        about = {"data": data, "split": SEED, "model": self.model, "options": options, "seed": seed}
        return Case(trial, {**about, "epochs": list(epochs)}, (self.which, self.name, final))

    def first(self, options: Options) -> list[Case]:
        """Return the trials of the grid, or a part of it in a smaller run, or the search."""
        if self.trials is None:
            found = [self.trial(options.data, each) for each in self.grid]
            order = np.random.default_rng(0).permutation(len(found))
            return (
                found if options.trials >= TRIALS else [found[n] for n in order[: options.trials]]
            )
        fixed = {**self.fixed}
        if presets.has_option(self.model, "iterations"):
            fixed["iterations"] = max(self.epochs)
        known = (name for name in ("unobserved_weight", "regularization", "bandwidth", "factors"))
        free = {n: None for n in known if presets.has_option(self.model, n) and n not in fixed}
        about = {
            "data": options.data,
            "split": SEED,
            "model": self.model,
            "options": fixed,
            "seed": 0,
        }
        space = {
            name: None if each is None else list(each) for name, each in (free | self.space).items()
        }
        about |= {"objective": self.objective, "space": space}
        about["trials"] = min(self.trials, options.trials)
        return [Case(tuned, about, (self.which, self.name, False))]

    def value(self, mean: float, tail: float) -> float:
        """Return what is maximised."""
        return mean if self.objective == "mean" else (mean + tail) / 2

    def tried(self, results: Sequence[Result]) -> list[Row]:
        """Return the trials so far: their options, epochs, and scores."""
        found = []
        for each in results:
            if each.case.label == (self.which, self.name, False):
                for one in each.record.get("trials", []):
                    options = {**self.fixed, **one["options"]}
                    found.append(
                        {"options": options, "epochs": one["epochs"], "scores": one["scores"]}
                    )
                if "curve" in each.record:
                    for epochs, *scores in each.record["curve"]:
                        options = each.settings["options"]
                        found.append({"options": options, "epochs": int(epochs), "scores": scores})
        return found

    def repetitions(self, results: Sequence[Result], options: Options) -> list[Case]:
        """Return the repetitions of the best trials, and of the first one of `tune`: the defaults."""
        rows = self.tried(results)
        best: dict[str, tuple[float, int]] = {}
        for place, row in enumerate(rows):
            value = self.value(*row["scores"])
            key = canonical(row["options"])
            best[key] = max(best.get(key, (-math.inf, 0)), (value, -place))
        chosen = sorted(best, key=lambda key: best[key], reverse=True)[:KEPT]
        if self.trials is not None and (start := canonical(rows[0]["options"])) not in chosen:
            chosen.append(start)
        sizes = [{"factors": size} for size in self.sizes] or [{}]
        starts = range(1, 1 + STARTS) if presets.has_option(self.model, "random_state") else [0]
        return [
            self.trial(options.data, {**json.loads(each), **size}, seed, final=True)
            for each in chosen
            for size in sizes
            for seed in starts
        ]

    def candidates(self, results: Sequence[Result]) -> list[Row]:
        """Return the repeated settings, best first, each with its number of epochs.

        Differences up to `SAME` count as none: then the fewest epochs, and the fewest factors, win.
        """
        runs: dict[str, list[Any]] = {}
        for each in results:
            if each.case.label == (self.which, self.name, True):
                options = {k: v for k, v in each.settings["options"].items() if k != "iterations"}
                runs.setdefault(canonical(options), []).append(each.record["curve"])
        found = []
        for text, curves in runs.items():
            size = min(map(len, curves))
            if size:
                means = np.mean([curve[:size] for curve in curves], axis=0)
                values = np.array([self.value(mean, tail) for _, mean, tail in means])
                place = int(np.argmax(values >= values.max() - SAME))
                epochs, mean, tail = means[place]
                row = {"options": json.loads(text), "epochs": int(epochs), "value": values[place]}
                found.append({**row, "mean": float(mean), "tail": float(tail)})
        enough = max(row["value"] for row in found) - SAME

        def order(row: Row) -> tuple[bool, float, float]:
            good = row["value"] >= enough
            return not good, float(row["options"].get("factors", 0)) if good else 0, -row["value"]

        return sorted(found, key=order)

    def chosen(self, candidates: Sequence[Row], command: str) -> list[tuple[str, Preset]]:
        """Return the preset and the best of each size, with the sets they belong to."""

        def preset(name: str, row: Row) -> Preset:
            options = dict(row["options"])
            if presets.has_option(self.model, "iterations"):
                options["iterations"] = row["epochs"]
            return Preset(name, self.model, options, command)

        found = [(self.which, preset(self.name, candidates[0]))]
        for size in self.sizes:
            best = max(
                (row for row in candidates if row["options"]["factors"] == size),
                key=lambda row: float(row["value"]),
            )
            found.append(("sized", preset(f"{self.name}, d = {size}", best)))
        return found

    def marked(self, options: Mapping[str, Any]) -> str:
        """Write options; those near an end of their range, which may be too narrow, have a mark."""
        texts = []
        for name, value in options.items():
            place = range_of(*self.space[name]).place(value) if name in self.space else None
            near = place is not None and not NEAR <= place <= 1 - NEAR
            texts.append(f"{name} {value}{'†' if near else ''}")
        return ", ".join(texts)

    @property
    def about(self) -> str:
        """How the search is made, for a page."""
        measures = {"mean": "mean of recall@20", "both": "mean and tail 0.3 of recall@20"}
        ranges = "; ".join(f"{name} {range_of(*each)}" for name, each in self.space.items())
        kind = "on a grid" if self.trials is None else "by `safecf.tune`, the defaults first"
        epochs, final = (", ".join(map(str, each)) for each in (self.epochs, self.final))
        sizes = f", d = {', '.join(map(str, self.sizes))}" if self.sizes else ""
        return (
            f"by the {measures[self.objective]}: {ranges}; {self.budget} {kind}, after {epochs} "
            f"epochs; then the {KEPT} best, after {final}{sizes}."
        )


def searches(data: str, names: Sequence[str] = ()) -> list[Search]:
    """Return the searches on a data set, or those of the set `tuned` with these names.

    On "tiny" they are those of ml-1m with few factors and epochs.
    """
    found = SEARCHES["ml-1m" if data == TINY else data]
    if names:
        known = {each.name: each for each in found if each.which == "tuned"}
        found = [choose("search", name, known) for name in dict.fromkeys(names)]
    if data != TINY:
        return found
    small = {"factors": ("one of", 4), "block_size": ("one of", 2), "batch_size": ("one of", 50)}
    return [
        replace(
            each,
            space={name: small.get(name, kept) for name, kept in each.space.items()},
            fixed={name: 4 if name == "factors" else kept for name, kept in each.fixed.items()},
            epochs=(1,),
            final=(1,) if each.model in ("EASE", "MultVAE") else (1, 2),
            sizes=(4, 6) if each.sizes else (),
        )
        for each in found
    ]


def cases(options: Options) -> list[Case]:
    """Return the trials."""
    return [
        case for each in searches(options.data, options.searches) for case in each.first(options)
    ]


def then(results: list[Result], options: Options) -> list[Case]:
    """Return the repetitions."""
    found = searches(options.data, options.searches)
    return [case for each in found for case in each.repetitions(results, options)]


def tables(results: list[Result], options: Options) -> Tables:
    """Return trials, repetitions and presets; write the latter to `options.presets`, if given."""
    numbers: list[Row] = []
    about, repeated = [], []
    found: list[tuple[str, Preset]] = []
    command = EXPERIMENT.command(replace(options, presets=None))
    for search in searches(options.data, options.searches):
        names = {"set": search.which, "model": search.name}
        about.append({**names, "about": search.about})
        for row in search.tried(results):
            numbers.append({**names, "stage": "search", "seed": 0, **_scores(search, row)})
        for each in results:
            if each.case.label == (search.which, search.name, True):
                seed = {"stage": "repetition", "seed": each.settings["seed"]}
                for epochs, *scores in each.record["curve"]:
                    row = {
                        "options": each.settings["options"],
                        "epochs": int(epochs),
                        "scores": scores,
                    }
                    numbers.append({**names, **seed, **_scores(search, row)})
        candidates = search.candidates(results)
        found += search.chosen(candidates, command)
        repeated += [
            {**names, **row, "options": search.marked(row["options"])} for row in candidates
        ]
    if options.presets is not None:
        presets.update(options.presets, options.data, found)
    everything: Presets = {}
    for which, preset in found:
        everything.setdefault(which, {}).setdefault(options.data, {})[preset.name] = preset
    toml = [{"toml": presets.dump(everything)}]
    return {"numbers": numbers, "searches": about, "candidates": repeated, "presets": toml}


def _scores(search: Search, row: Row) -> Row:
    mean, tail = row["scores"]
    found = {"options": canonical(row["options"]), "epochs": row["epochs"]}
    return {**found, "objective": search.value(mean, tail), "R@20": mean, "tail 0.3": tail}


# The paper's table of hyperparameter ranges, as grids; d = 32 as on ML-1M.
_PAPER = {"ridge_in_risk": False}  # the users' ridge stands outside the risk
_TAIL = {"factors": 32, "tail": 0.3, **_PAPER}
_NORMALISED: Space = {
    "unobserved_weight": ("log", 1e-4, 1e-2),
    "regularization": ("log", 1e-4, 1e-2),
}
_KERNEL = {**_TAIL, "unobserved_weight": 0.004, "regularization": 0.004, "quantile_steps": 5}
_IALS: Space = {"unobserved_weight": ("log", 1e-2, 1.0), "regularization": ("log", 5e-4, 0.1, 7)}
_CVAR: Space = {
    "unobserved_weight": ("log", 1e-3, 0.1, 4),
    "regularization": ("log", 1e-4, 1e-2, 4),
    "step_size": ("linear", 0.1, 0.5, 3),
}
_VAE: Space = {
    "step_size": ("log", 1e-4, 1e-2, 3),
    "batch_size": ("one of", 50, 200, 500),
    "beta": ("linear", 0.1, 1.0, 3),
}
_BANDED: Space = {**_NORMALISED, "bandwidth": ("log", 0.1, 1.0, 5)}
_GAUSSIAN = {**_TAIL, "kernel": "gaussian", "quantile_steps": 5}
GRIDS = [
    Search("grid", "iALS", "IALS", _IALS, {"factors": 32}),
    Search("grid", "ERM-MF", "ERMMF", _NORMALISED, _TAIL),
    Search("grid", "SAFER2", "SAFER2", _BANDED, _GAUSSIAN),
    *(
        Search(
            *("grid", f"SAFER2, {kernel}", "SAFER2", {"bandwidth": ("log", 0.04, 2.0, 12)}),
            {**_KERNEL, "kernel": kernel.lower()},
        )
        for kernel in ("Gaussian", "Epanechnikov", "logistic", "uniform", "triangular")
    ),
    Search("grid", "CVaR-MF", "CVaRMF", _CVAR, _TAIL, (500,), (1000,)),
    Search("grid", "Mult-VAE", "MultVAE", _VAE, {"factors": 32, "device": "cpu"}, (50,), (50,)),
]

# Wider ranges, with more factors, by mean and tail.
_SMOOTH = {"tail": 0.3, "kernel": "gaussian", "quantile_steps": 5, **_PAPER}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "iALS": ("IALS", {}),
    "ERM-MF": ("ERMMF", {"tail": 0.3, **_PAPER}),
    "SAFER2": ("SAFER2", _SMOOTH),
    "SAFER2, rho = 1": ("SAFER2", _SMOOTH),
    "SAFER2, ridge in the risk": ("SAFER2", {**_SMOOTH, "ridge_in_risk": True}),
}
_FINAL = (8, 12, 16, 24, 32)
# Ends of ranges: unobserved_weight, regularization, normalisation, bandwidth.
_ENDS: dict[str, dict[str, Sequence[tuple[float, float]]]] = {
    "ml-1m": {
        "iALS": [(0.03, 3.0), (1e-3, 3e-2)],
        "ERM-MF": [(1e-3, 0.3), (1.5e-3, 1.5e-2), (0.0, 1.0)],
        "SAFER2": [(1e-3, 0.04), (1.5e-3, 1e-2), (0.5, 1.0), (0.06, 1.5)],
        "SAFER2, rho = 1": [(1e-3, 0.02), (1.5e-3, 1e-2), (), (0.06, 0.6)],  # type: ignore[list-item]
        "SAFER2, ridge in the risk": [(5e-4, 0.04), (1e-3, 2.5e-2), (0.5, 1.0), (0.02, 1.5)],
    },
    "gowalla": {
        "iALS": [(5e-3, 0.5), (3e-4, 3e-2)],
        "ERM-MF": [(5e-5, 0.1), (3e-4, 1e-2), (0.0, 1.0)],
        "SAFER2": [(5e-5, 0.1), (3e-4, 1e-2), (0.0, 1.0), (0.03, 3.0)],
    },
}


def _tuned(data: str, factors: int, sizes: tuple[int, ...], trials: int) -> list[Search]:
    """Return the searches for all models with row solvers."""
    kinds = {"unobserved_weight": "log", "regularization": "log", "normalisation": "linear"}
    kinds["bandwidth"] = "log"
    found = []
    for name, ends in _ENDS[data].items():
        model, fixed = _KINDS[name]
        space: Space = {
            option: (kind, *pair)
            for (option, kind), pair in zip(kinds.items(), ends, strict=False)
            if pair
        }
        size = {"factors": factors, **fixed}
        found.append(
            Search("tuned", name, model, space, size, (16,), _FINAL, "both", trials, sizes)
        )
    return found


def _other(name: str, model: str, space: Space, fixed: dict[str, Any], *sizes: Any) -> Search:
    return Search("tuned", name, model, space, fixed, *sizes[:2], "both", *sizes[2:])


def _cvar_mf(unobserved: tuple[float, float], trials: int) -> Search:
    """Return the search for CVaR-MF, with few trials, since each takes hundreds of epochs."""
    space = {**_CVAR, "unobserved_weight": ("log", *unobserved)}
    return _other("CVaR-MF", "CVaRMF", space, {"factors": 64, "tail": 0.3}, (500,), (1000,), trials)


_EASE: Space = {"regularization": ("log", 50.0, 2000.0, 12)}
_WEIGHTED: Space = {
    "regularization": ("log", 30.0, 1000.0),
    "normalisation": ("linear", 0.0, 1.0),
    "dropout": ("linear", 0.0, 0.8),
}
_WIDE_VAE: Space = {
    "factors": ("one of", 64, 128, 256),
    "step_size": ("log", 1e-3, 1e-2),
    "batch_size": ("one of", 100, 200, 400),
    "beta": ("log", 0.02, 0.5),
    "dropout": ("linear", 0.3, 0.8),
}
# Not on Gowalla, with its 41 thousand items: EASE would need 19 GiB, and Mult-VAE almost a minute
# per epoch.
SEARCHES = {
    "ml-1m": [
        *_tuned("ml-1m", 256, (128, 256, 512, 1024), TRIALS),
        _cvar_mf((1e-3, 0.05), 40),
        _other("EASE", "EASE", _EASE, {"normalisation": 0.0, "dropout": 0.0}, (1,), (1,)),
        _other("EASE, weighted", "EASE", _WEIGHTED, {}, (1,), (1,), 80),
        _other("Mult-VAE", "MultVAE", _WIDE_VAE, {"device": "cpu"}, (50,), (50,), 40),
        *GRIDS,
    ],
    "gowalla": [*_tuned("gowalla", 128, (64, 128, 256), 60), _cvar_mf((5e-5, 5e-3), 20)],
}

EXPERIMENT = Experiment(
    "tuning",
    "Settings of all models",
    cases,
    tables,
    then=then,
    paper="the table of hyperparameter ranges, and beyond it",
    data=tuple(SEARCHES),
    counts={"trials": TRIALS},
)
