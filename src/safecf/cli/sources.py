"""What the commands work on: data by name or path, and models by name and options."""

import ast
import os
from pathlib import Path
from typing import Any

import numpy as np

from safecf.data.datasets import DATASETS, paper_split, read
from safecf.data.split import Split, strong_generalization
from safecf.data.synthetic import SHAPES, synthetic
from safecf.errors import choose
from safecf.models.catalogue import MODELS
from safecf.models.recommender import Recommender

HELDOUT_SHARE = 0.1

DATA_HELP = (
    f"A data set ({', '.join(DATASETS)}; its files by --path), a synthetic one "
    f"({', '.join(SHAPES)}), or a Parquet or CSV file with the columns --user and --item."
)
MODEL_HELP = (
    "A model and its options, as in 'safer2:factors=32,bandwidth=0.15', or a file that a model was "
    f"saved to; repeat it to compare. Models: {', '.join(name.lower() for name in MODELS)}."
)


def load_split(
    data: str,
    *,
    path: str | os.PathLike[str] | None = None,
    user: str = "user",
    item: str = "item",
    heldout: int | None = None,
    seed: int = 98765,
) -> Split:
    """Split the data by strong generalisation.

    Data sets are split as the paper does. Of other data, `heldout` users, a tenth by default, are
    held out for validation and as many for the test.
    """
    if data in DATASETS:
        return paper_split(data, path, seed=seed)
    groups = None
    if data in SHAPES:
        drawn = synthetic(data)
        pairs = drawn.matrix.tocoo()
        users, items, groups = pairs.row, pairs.col, drawn.group
    elif Path(data).exists():
        log = read(data, user=user, item=item)
        users, items = log.users, log.items
    else:
        choose("data set or file", data, {**DATASETS, **SHAPES})
    count = heldout or max(1, round(HELDOUT_SHARE * np.unique(users).size))
    return strong_generalization(users, items, heldout=count, seed=seed, groups=groups)


def make_model(spec: str, random_state: int | None = 0) -> tuple[str, Recommender]:
    """Return a display name and a model, from 'name:option=value,...' or from a file.

    >>> make_model("safer2:factors=32")[1]
    SAFER2(factors=32, random_state=0)
    """
    if spec.endswith(".safetensors"):
        model = Recommender.load(spec)
        return f"{type(model).__name__} ({Path(spec).stem})", model
    name, _, text = spec.partition(":")
    kind = choose("model", name.lower(), {known.lower(): each for known, each in MODELS.items()})
    options: dict[str, Any] = {"random_state": random_state}
    for setting in filter(None, text.split(",")):
        key, sign, value = setting.partition("=")
        if not sign:
            raise ValueError(f"{spec!r}: {setting!r} is no option=value; try {name}:factors=32")
        options[key.strip()] = _value(value.strip())
    known = {each: each for each in kind().get_params()}
    for key in options:
        choose(f"option of {kind.__name__}", key, known)
    return kind.__name__, kind(**options)


def _value(text: str) -> Any:
    if text == "inf":
        return float(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
