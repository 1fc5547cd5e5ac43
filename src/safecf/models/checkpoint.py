"""Checkpoints: everything `fit` needs to resume after an epoch."""

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.als.loop import Epoch
from safecf.als.optimizers import Factors, Moments
from safecf.als.rows import Problem
from safecf.als.state import State
from safecf.data.matrices.ids import IdArray
from safecf.errors import FileFormatError, shown
from safecf.models import files
from safecf.models.history import pack_history, unpack_history
from safecf.models.json_values import plain

# Options that may change when a run is resumed; the seed is checked instead of random_state.
FREE_OPTIONS = {"iterations", "num_threads", "backend", "device", "random_state"}

Path = str | os.PathLike[str]


def fingerprints(problem: Problem, labels: IdArray | None) -> dict[str, str]:
    """Return hashes of the data of a fit: interactions, user weights and group labels."""
    users = problem.interactions.users
    names = None if labels is None else np.frombuffer(repr(labels.tolist()).encode(), np.uint8)
    return {
        "user_items": _hash(np.array(users.shape), users.indptr, users.indices, users.weights),
        "user_weight": _hash(problem.user_count),
        "user_groups": _hash(names),
    }


def _hash(*arrays: NDArray[Any] | None) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Run:
    """The identity of a training: the model, its options, the data and the seed."""

    model: str
    options: Mapping[str, Any]
    data: Mapping[str, str]
    seed: int

    def differences(self, earlier: "Run") -> list[str]:
        """Return in what this run differs from an earlier one; none if it goes on with it.

        >>> run, earlier = (Run("IALS", {"factors": each}, {}, seed=0) for each in (4, 3))
        >>> run.differences(earlier)
        ['factors=3 in the file, 4 here']
        """
        if earlier.model != self.model:
            return [f"model {shown(earlier.model)[1:-1]} in the file, {self.model} here"]
        differing = []
        for name, value in self.options.items():
            before = earlier.options.get(name)
            if name not in FREE_OPTIONS and plain(before) != plain(value):
                differing.append(f"{name}={shown(before)} in the file, {shown(value)} here")
        if earlier.seed != self.seed:
            differing.append(f"random_state={earlier.seed} in the file, {self.seed} here")
        for name, data in self.data.items():
            if earlier.data.get(name) != data:
                differing.append(f"{name} is not what the file was trained on")
        return differing

    def check_replaces(self, path: Path, earlier: "Run", epoch: int) -> None:
        """Raise if this run could not have written the checkpoint of this epoch at the path."""
        differing = self.differences(earlier)
        if epoch > self.options["iterations"]:
            differing.append(
                f"it is at epoch {epoch}, beyond iterations={self.options['iterations']}"
            )
        if differing:
            raise FileExistsError(
                f"{files.with_suffix(path)} is the checkpoint of another run, and checkpoint= "
                f"would replace it: {'; '.join(differing)}. To go on with that run, use its "
                "options and data with resume=; else give another path, or delete the file first"
            )

    def check_continues(self, earlier: "Run", state: State, shape: tuple[int, int, int]) -> None:
        """Raise if a checkpoint is of another run, or beyond `iterations`."""
        differing = self.differences(earlier)
        users, (items, factors) = len(state.users), state.items.shape
        if (users, items, factors) != shape:
            differing.append(
                f"{users} users x {items} items with {factors} factors in the file, {shape[0]} x "
                f"{shape[1]} with {shape[2]} here"
            )
        if differing:
            raise ValueError(
                f"cannot resume: {'; '.join(differing)}. Use the same options and data, or start "
                "anew without resume"
            )
        if state.epoch > self.options["iterations"]:
            raise ValueError(
                f"cannot resume: the file is at epoch {state.epoch}, beyond iterations="
                f"{self.options['iterations']}; raise iterations"
            )


def write_checkpoint(path: Path, run: Run, state: State, history: list[Epoch]) -> None:
    """Replace the checkpoint file atomically."""
    options = {name: value for name, value in run.options.items() if name not in FREE_OPTIONS}
    header = {
        "class": run.model,
        "options": options,
        "data": run.data,
        "seed": run.seed,
        "epoch": state.epoch,
        "xi": state.xi,
        "history": pack_history(history),
    }
    arrays = {"users": state.users, "items": state.items, "weights": state.weights}
    for side, moments in zip(("users", "items"), state.moments, strict=True):
        if moments is not None:
            arrays |= {f"{side}.{name}": moment for name, moment in moments._asdict().items()}
    if state.spectrum is not None:
        arrays["spectrum"] = state.spectrum
    files.write(path, files.CHECKPOINT, header, arrays)


def read_run(header: Mapping[str, Any]) -> Run:
    """Return the run that the header of a checkpoint describes."""
    return Run(
        model=files.field(header, "class", str),
        options=files.field(header, "options", dict),
        data=files.field(header, "data", dict),
        seed=files.field(header, "seed", int),
    )


def read_checkpoint(path: Path) -> tuple[Run, State, list[Epoch]]:
    """Read and validate a checkpoint."""
    if not files.located(path).is_file():
        raise FileNotFoundError(
            errno.ENOENT,
            "there is no checkpoint to resume from; leave resume out to start anew",
            str(files.with_suffix(path)),
        )
    with files.naming(path):
        header, arrays = files.read(path, files.CHECKPOINT)
        run = read_run(header)
        users = files.array(arrays, "users", (None, None), np.float32, np.float64)
        items = files.array(arrays, "items", (None, users.shape[1]), np.float32, np.float64)
        adam = run.options.get("optimizer") == "adam"
        state = State(
            users=users,
            items=items,
            weights=files.array(arrays, "weights", (len(users),), np.float64),
            xi=files.field(header, "xi", float),
            epoch=files.field(header, "epoch", int),
            moments=(
                read_moments(arrays, "users", users, required=adam),
                read_moments(arrays, "items", items, required=adam),
            ),
        )
        if "spectrum" in arrays:
            state.spectrum = files.array(arrays, "spectrum", (users.shape[1],), np.float64)
        history = unpack_history(header, Epoch)
        numbered = all(record.epoch == at for at, record in enumerate(history, start=1))
        if run.seed < 0 or not numbered or not 0 < state.epoch == len(history):
            raise FileFormatError("its history is damaged; start anew without resume")
    return run, state, history


def read_moments(
    arrays: files.Arrays, side: str, factors: Factors, *, required: bool
) -> Moments | None:
    """Read and validate the optimizer's moments of one side; None if the file has none."""
    names = [f"{side}.{name}" for name in Moments._fields]
    if not required and arrays.keys().isdisjoint(names):
        return None
    kinds = np.float32, np.float64
    moments = Moments(*(files.array(arrays, name, factors.shape, *kinds) for name in names))
    if moments.square.min(initial=0) < 0:
        raise FileFormatError(f"the squares {names[1]!r} are negative; start anew without resume")
    return moments
