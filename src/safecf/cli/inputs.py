"""The inputs of a command: data by name or path, splits, and models by name and options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from safecf.caching import cached_property
from safecf.cli.command_options import COUNTS, DataOptions, flag
from safecf.cli.split_options import SplitOptions
from safecf.data.datasets.dataset import DataSet
from safecf.data.datasets.loading import DATASETS, load, read_files
from safecf.data.datasets.synthetic import SHAPES, synthetic
from safecf.data.matrices.interactions import Interactions
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.data.splits.protocol import MIN_INTERACTIONS
from safecf.data.splits.split_files import is_split, read
from safecf.errors import choose, shown
from safecf.models import MODELS, Recommender
from safecf.models.files import SUFFIX, with_suffix
from safecf.models.options import check_options
from safecf.texts import parse_value


@dataclass(frozen=True)
class Data:
    """A log, the options that it was read with, and its data set, if it has a name.

    `made` is the split that was read from a folder, of which the log has all interactions.
    """

    log: Log
    options: DataOptions
    dataset: DataSet | None = None
    made: Split | None = None

    @cached_property
    def filtered(self) -> Log:
        """Merge duplicates, drop rare items and users; the paper's minimums are the defaults."""
        counts = {name: getattr(self.dataset, name, 1) for name in COUNTS} | self.options.counts()
        return self.log.merged(self.options.duplicates or "sum").filtered(**counts)

    def split(self, options: SplitOptions) -> Split:
        """Split by the options; for the paper's data sets, its numbers are the defaults."""
        if self.made is not None:
            split_settings(self.options, options)
            return self.made
        log = self.filtered
        given: dict[str, Any] = {"weighted": self.options.weight is not None}
        if options.split == "temporal":
            chosen = {"share": options.share, "cutoff": options.cutoff}
            return log.temporal(**given, **_given(chosen))
        if options.split == "holdout":
            chosen = {"share": options.share, "min_interactions": self._min_interactions}
            return log.per_user_holdout(**given, seed=options.seed, **_given(chosen))
        chosen = {
            "heldout": options.heldout,
            "holdout_share": options.share,
            "min_interactions": self._min_interactions,
        }
        if self.dataset is not None and options.heldout is None:
            chosen["heldout"] = self.dataset.heldout
        return log.strong_generalization(**given, seed=options.seed, **_given(chosen))

    def interactions(self) -> Interactions:
        """Return all interactions with their ids, filtered as for a split."""
        if self.made is not None:
            rows, made = _whole(self.made), self.made
            return Interactions.from_csr(rows, user_ids=made.user_ids, item_ids=made.item_ids)
        return self.filtered.interactions(weighted=self.options.weight is not None)

    def dropped_users(self, split: Split) -> tuple[int, int]:
        """Return how many users a split of users drops, and how many interactions it asks for."""
        count = np.unique(self.log.users).size - split.user_ids.size
        return count, self._min_interactions or MIN_INTERACTIONS

    @property
    def _min_interactions(self) -> int | None:
        default = getattr(self.dataset, "min_user_interactions", None)
        return self.options.counts().get("min_user_interactions", default)


def load_data(options: DataOptions) -> Data:
    """Read a data set, draw a synthetic one, or read files."""
    name = options.data[0]
    if name in DATASETS and len(options.data) == 1:
        options.refuse_others(("path", "min_rating", *COUNTS), f"the data set {name}")
        return Data(
            load(name, options.path, min_rating=options.min_rating), options, DATASETS[name]
        )
    if name in SHAPES and len(options.data) == 1:
        options.refuse_others(COUNTS, f"the synthetic data {name!r}")
        return Data(draw(name), options)
    if _is_split(options):
        options.refuse_others((), f"{name}, which is split already")
        made = read(name)
        return Data(Log.of_matrix(_whole(made)), options, made=made)
    for each in options.data:
        if each.endswith(SUFFIX):
            raise ValueError(f"{shown(each)} is a model, not data; give the interactions")
    if options.path is not None:
        raise ValueError(f"--path is for {', '.join(DATASETS)}; give the files themselves instead")
    if len(options.data) == 1 and not Path(name).suffix and not os.path.exists(name):
        choose("data set or file", name, {**DATASETS, **SHAPES})
    return Data(read_files(options.data, options.layout()), options)


def split_settings(data: DataOptions, options: SplitOptions) -> dict[str, object]:
    """Return the settings that reproduce the split; raise if the data is split already, but not so.

    The settings of a split that is read from a folder are in its files alone.
    """
    if not _is_split(data):
        return options.settings()
    for field in fields(options):
        if getattr(options, field.name) != field.default:
            raise ValueError(
                f"{flag(field.name)} does not apply to {data.data[0]}, which is split already; "
                "leave it out, or give the data that it was made from"
            )
    return {"split": f"read from {data.data[0]}"}


def _is_split(options: DataOptions) -> bool:
    name = options.data[0]
    return len(options.data) == 1 and name not in (*DATASETS, *SHAPES) and is_split(name)


def _whole(split: Split) -> scipy.sparse.csr_matrix:
    """Return all interactions of a split of users: training, validation, test."""
    held_out = [each.history + each.target for each in (split.validation, split.test)]
    return scipy.sparse.csr_matrix(scipy.sparse.vstack([split.train, *held_out]))


def all_but_test(split: Split) -> Interactions:
    """Return the training and validation users of a split of users, with all they have."""
    count = split.train.shape[0] + split.validation.history.shape[0]
    rows, ids = _whole(split)[:count], split.user_ids[:count]
    return Interactions.from_csr(rows, user_ids=ids, item_ids=split.item_ids)


def draw(shape: str, seed: int = 0) -> Log:
    """Draw synthetic data; the users' tastes are their groups."""
    drawn = synthetic(shape, seed=seed)
    tastes = np.char.add("taste ", drawn.group.astype(str)).astype(object)
    return Log.of_matrix(drawn.matrix, tastes)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def make_model(spec: str, random_state: int | None = 0) -> tuple[str, Recommender]:
    """Return a display name and a model, from 'name:option=value,...' or from a file.

    >>> make_model("safer2:factors=32")[1]
    SAFER2(factors=32, random_state=0)
    """
    name, _, text = spec.partition(":")
    kinds = {known.lower(): each for known, each in MODELS.items()}
    if spec.endswith(SUFFIX):
        model = Recommender.load(spec)
        return f"{type(model).__name__} ({Path(spec).stem})", model
    if name.lower() not in kinds and os.path.isfile(with_suffix(spec)):
        raise ValueError(f"unknown model {shown(spec)}; for the file, give {with_suffix(spec)}")
    kind = choose("model", name.lower(), kinds)
    known = {each: each for each in kind().get_params()}
    options: dict[str, Any] = {"random_state": random_state} if "random_state" in known else {}
    given: dict[str, Any] = {}
    for setting in filter(None, text.split(",")):
        key, sign, value = setting.partition("=")
        if not sign:
            raise ValueError(
                f"{shown(spec)}: {shown(setting)} is no option=value; try {name}:factors=32"
            )
        if key.strip() in given:
            raise ValueError(f"{shown(spec)}: {key.strip()} is given twice; leave one of them out")
        given[key.strip()] = parse_value(value.strip())
    options |= given
    for key in options:
        choose(f"option of {kind.__name__}", key, known)
    check_options(options, kind)
    return kind.__name__, kind(**options)


def spec_of(model: Recommender) -> str:
    """Return 'name:option=value,...' with the options that are not the defaults, to the last digit.

    The seed is left out, which has an option of its own.

    >>> spec_of(SAFER2(factors=32, bandwidth=0.1, random_state=0))
    'safer2:factors=32,bandwidth=0.1'
    """
    defaults = type(model)().get_params()
    given = [
        f"{name}={value.item() if isinstance(value, np.generic) else value}"
        for name, value in model.get_params().items()
        if name != "random_state" and repr(value) != repr(defaults[name])
    ]
    return ":".join([type(model).__name__.lower(), *filter(None, [",".join(given)])])


def make_unfitted(spec: str, random_state: int) -> tuple[str, Recommender]:
    """Return a display name and a model that is to be trained; raise if it is one from a file."""
    if spec.endswith(SUFFIX):
        raise ValueError(f"{spec} is a fitted model; give a model and its options, as in safer2")
    return make_model(spec, random_state)


def name_models(specs: list[str], random_state: int) -> dict[str, Recommender]:
    """Make all models; those of one class are told apart by their options, or numbered."""
    made = [make_model(spec, random_state) for spec in specs]
    names = [name for name, _ in made]
    found: dict[str, Recommender] = {}
    for spec, (name, model) in zip(specs, made, strict=True):
        text = spec.partition(":")[2]
        label = f"{name} ({text})" if names.count(name) > 1 and text else name
        number = 1 + sum(other.partition(" #")[0] == label for other in found)
        found[f"{label} #{number}" if number > 1 else label] = model
    return found


def refuse_fitted(models: Mapping[str, Recommender]) -> None:
    """Raise if a model was loaded from a file, which cannot be trained on several splits."""
    for name, model in models.items():
        if model.is_fitted:
            raise ValueError(
                f"{name} is trained already, while --repeats trains every model on every split; "
                f"give its options instead, as in {type(model).__name__.lower()}:option=value, or "
                "leave out --repeats"
            )
