"""Studies on disk: the finished trials of a search, in an SQLite file that Optuna reads, too.

Only finished trials are written, each in one transaction: a process that is killed loses the trial
that was under way, and nothing else.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from safecf.checks import check_type
from safecf.data.splits.held_out import Split
from safecf.errors import FileFormatError
from safecf.evaluation.json_records import Record, sealed, shortened
from safecf.tuning.objective import Objective
from safecf.tuning.sampler import quiet
from safecf.tuning.space import Space
from safecf.tuning.trials import COMPLETE, FAILED, Trial

SETTINGS, RANGES, TRIAL = "safecf settings", "safecf ranges", "safecf trial"


class Study:
    """The finished trials of one model, in memory and, given a path, in a file.

    Parameters
    ----------
    path
        The file, which may hold the studies of several models; None: trials are not written.
    name
        The name of the study in the file.
    settings
        What the trials depend on; a file that holds others is refused.
    objective
        What is maximised.
    """

    def __init__(
        self, path: Path | None, name: str, settings: dict[str, Any], objective: Objective
    ) -> None:
        self.path = path
        self.objective = objective
        self.trials: list[Trial] = []
        self._stored: Any = None
        if path is None:
            return
        with _file_errors(path), quiet() as optuna:
            self._stored = optuna.create_study(
                storage=_storage(optuna, path),
                study_name=name,
                directions=["maximize"] * len(objective.levels),
                load_if_exists=True,
            )
        self._agree(SETTINGS, json.loads(json.dumps(settings)))
        self.trials = [
            Trial.from_dict(each, f"{path}, trial {number}")
            for number, each in enumerate(self._records())
        ]
        if [each.number for each in self.trials] != list(range(len(self.trials))):
            raise FileFormatError(
                f"{path}: its trials are not numbered 0, 1, ...; choose another study"
            )
        if self.trials and self.trials[0].scores is None:
            raise FileFormatError(f"{path}, trial 0: it has no scores; choose another study")

    def check_space(self, space: Space) -> None:
        """Write the ranges; raise if the file has others."""
        if self._stored is not None:
            self._agree(RANGES, {name: str(each) for name, each in space.items()})

    def append(self, trial: Trial, space: Space) -> None:
        """Add a finished trial."""
        if self._stored is not None:
            if len(self._records()) != len(self.trials):
                raise OSError(
                    f"{self.path}: another process has added trials; run one search at a time, "
                    "or give each its own study"
                )
            with _file_errors(self.path), quiet() as optuna:
                self._stored.add_trial(_frozen(optuna, trial, space, self.objective))
        self.trials.append(trial)

    def _records(self) -> list[Any]:
        """Return the records of all trials, not checked yet; None for those of others."""
        with _file_errors(self.path), quiet():
            stored = self._stored.get_trials(deepcopy=False)
        return [each.user_attrs.get(TRIAL) for each in stored]

    def _agree(self, key: str, wanted: dict[str, Any]) -> None:
        """Write a record, or raise if there is another one."""
        with _file_errors(self.path), quiet():
            known = self._stored.user_attrs
            if key not in known:
                self._stored.set_user_attr(key, wanted)
                return
        found = Record(known[key], f"{self.path}, {key!r}", "choose another study").values
        if found != wanted:
            names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
            told = "; ".join(f"{n} {found.get(n)} there, {wanted.get(n)} here" for n in names)
            raise ValueError(
                f"{self.path} is the study of another search: {shortened(told)}; give another "
                "file, as in study='another.sqlite', or delete this one"
            )


def _frozen(optuna: Any, trial: Trial, space: Space, objective: Objective) -> Any:
    """Return the trial as one of Optuna's, with its own record as an attribute."""
    states = optuna.trial.TrialState
    known = {n: each for n, each in space.items() if each.contains(trial.options.get(n))}
    return optuna.create_trial(
        state={COMPLETE: states.COMPLETE, FAILED: states.FAIL}.get(trial.state, states.PRUNED),
        params={name: trial.options[name] for name in known},
        distributions={name: each.distribution() for name, each in known.items()},
        values=None if trial.scores is None else objective.values(trial.scores),
        user_attrs={TRIAL: sealed(trial.to_dict())},
    )


def _storage(optuna: Any, path: Path) -> Any:
    from sqlalchemy.pool import NullPool  # noqa: PLC0415 - comes with Optuna

    return optuna.storages.RDBStorage(
        f"sqlite:///{path.absolute()}", engine_kwargs={"poolclass": NullPool}
    )


@contextlib.contextmanager
def _file_errors(path: Path | None) -> Iterator[None]:
    """Translate the errors of Optuna, SQLAlchemy and SQLite, which a damaged file makes many of."""
    try:
        yield
    except Exception as problem:
        reason = shortened(str(problem.__cause__ or problem).partition("\n")[0])
        raise FileFormatError(
            f"{path} cannot be read or written as a study ({reason}); choose another file"
        ) from problem


def fingerprint(split: Split) -> str:
    """Return a checksum of what trials see: the training data and the validation users."""
    found = hashlib.sha256()
    matrices: tuple[csr_matrix, ...] = (
        split.train,
        split.validation.history,
        split.validation.target,
    )
    for matrix in matrices:
        found.update(np.array(matrix.shape, dtype="<i8").tobytes())
        for array, kind in ((matrix.indptr, "<i8"), (matrix.indices, "<i8"), (matrix.data, "<f4")):
            found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return found.hexdigest()[:16]


def study_path(study: str | os.PathLike[str] | None) -> Path | None:
    """Return the path of a study; raise if it is a folder, or in a folder that is not there."""
    if study is None:
        return None
    check_type("study", study, (str, os.PathLike), "give the file of the study")
    path = Path(study)
    if set("?{}") & set(str(path.absolute())):
        raise ValueError(f"the study {path} has one of ? {{ }} in its path; choose another name")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file of the study")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; create it first")
    return path
