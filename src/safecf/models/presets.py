"""Presets: settings of models that were found for known data sets, kept in presets.toml.

>>> presets("ml-1m")["SAFER2"].make(random_state=0)
SAFER2(factors=512, ...)

There are four sets: "paper", published by the authors; "grid", the best of the paper's ranges;
"tuned", the best of wider ranges; and "sized", the best of those for each number of factors.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safecf.errors import choose
from safecf.models import MODELS, Recommender
from safecf.models.options import check_options

FILE = Path(__file__).with_suffix(".toml")
SETS = ("paper", "grid", "tuned", "sized")


@dataclass(frozen=True)
class Preset:
    """The settings of one model.

    Parameters
    ----------
    name
        The model's name in tables, such as "SAFER2, rho = 1".
    model
        The name of its class.
    options
        Arguments of the class.
    found
        How the options were found: a command, or who published them.
    """

    name: str
    model: str
    options: dict[str, Any]
    found: str

    def __post_init__(self) -> None:
        kind = choose("model", self.model, MODELS)
        known = dict.fromkeys(kind().get_params())
        for option in self.options:
            choose(f"option of {self.name}", option, known)
        check_options(self.options, kind)

    def make(self, **overrides: Any) -> Recommender:
        """Return the model, not fitted yet; `overrides` replace options or add some."""
        return MODELS[self.model](**{**self.options, **overrides})


# By set, data set and name.
Presets = dict[str, dict[str, dict[str, Preset]]]


def presets(data: str, which: str = "tuned") -> dict[str, Preset]:
    """Return the presets of a data set by their names."""
    choose("set of presets", which, dict.fromkeys(SETS))
    known = read()
    choose("data set", data, dict.fromkeys(name for sets in known.values() for name in sets))
    if data not in known[which]:
        others = " or ".join(f"which={other!r}" for other in known if data in known[other])
        raise ValueError(f"there are no {which!r} presets for {data}; try {others}")
    return known[which][data]


def read(file: Path = FILE) -> Presets:
    """Read a file of presets and check each of them."""
    if not file.exists():
        raise FileNotFoundError(f"there is no {file}; make a copy of {FILE} there and edit it")
    try:
        content = tomllib.loads(file.read_bytes().decode("utf8"))
    except ValueError as problem:  # not TOML, or not UTF-8
        raise ValueError(f"{file}: {problem}; it has to be a TOML file like {FILE}") from None
    where = str(file)
    found: Presets = {}
    try:
        for which, sets in content.items():
            where = f"{file}, [{which}]"
            choose("set of presets", which, dict.fromkeys(SETS))
            found[which] = {}
            for data, entries in _table(sets).items():
                where = f"{file}, [{which}.{data}]"
                found[which][data] = {}
                for name, entry in _table(entries).items():
                    where = f'{file}, [{which}.{data}."{name}"]'
                    found[which][data][name] = _preset(name, entry)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{where}: {problem}") from None
    return found


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} has to be a table of presets")
    return value


def _preset(name: str, entry: Any) -> Preset:
    kinds = {"model": str, "found": str, "options": dict}
    for field, kind in kinds.items():
        if field not in _table(entry):
            raise ValueError(f"{field} is missing; an entry has {', '.join(kinds)}")
        if not isinstance(entry[field], kind):
            expected = "a text" if kind is str else "a table"
            raise TypeError(f"{field} = {entry[field]!r} has to be {expected}")
    return Preset(name, entry["model"], dict(entry["options"]), entry["found"])
