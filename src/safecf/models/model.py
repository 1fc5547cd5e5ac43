"""`Model`: what every model has, whatever it can be asked: options, caches, and files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from safecf.checks import check_type
from safecf.data.matrices.ids import IdArray
from safecf.defaults import AUTO
from safecf.errors import FileFormatError, shown
from safecf.models import files
from safecf.models.changes import Changes
from safecf.models.derived import Derived
from safecf.models.json_values import check_kept
from safecf.models.options import check_device, check_options, parameters

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender

File = str | os.PathLike[str] | IO[bytes]


class Model(ABC):
    """Options, what training has found, and the file of both.

    The constructor stores its arguments under their own names and looks at none of them; `fit`
    checks them all.
    """

    shape: tuple[int, int] = (0, 0)
    user_ids: IdArray | None = None
    item_ids: IdArray | None = None

    # the values that a fit has found for options that are "auto", by name
    resolved: Mapping[str, float] = {}

    # how the options were found, as `tune` tells; saved with the model, forgotten by `fit`
    provenance: dict[str, Any] | None = None

    # values of options that are not in files from before these options were added
    earlier_options: ClassVar[Mapping[str, Any]] = {}

    @property
    def is_fitted(self) -> bool:
        """Whether the model was fitted or loaded."""
        return self.shape != (0, 0)

    def get_params(self) -> dict[str, Any]:
        """Return the constructor's arguments and their values."""
        return {name: getattr(self, name) for name in parameters(type(self))}

    def __repr__(self) -> str:
        defaults = parameters(type(self))
        chosen = [
            f"{name}={shown(value)}"
            for name, value in self.get_params().items()
            if shown(value) != repr(defaults[name].default)
        ]
        chosen += [
            f"{name}='auto: {value:.3g}'"
            for name, value in self.resolved.items()
            if getattr(self, name) == AUTO
        ]
        return f"{type(self).__name__}({', '.join(chosen)})"

    def to(self, device: str) -> Self:
        """Work on a device from here on, if the model can; return the model.

        "auto" is the GPU, if there is one and the model can use it, and else the CPU.

        >>> model = SAFER2().to("auto").fit(user_items)
        """
        check_device("device", device, AUTO)
        if device not in (AUTO, "cpu"):
            raise ValueError(
                f"device={shown(device)}: {type(self).__name__} works on the CPU alone; try "
                "device='auto'"
            )
        return self

    @property
    def derived(self) -> Derived:
        """Cache of what is computed from the model's arrays; neither copied nor saved."""
        found: Derived = vars(self).setdefault("_derived", Derived())
        return found

    @property
    def changes(self) -> Changes:
        """Who may change the model now; neither copied nor saved."""
        found: Changes = vars(self).setdefault("_changes", Changes())
        return found

    def __getstate__(self) -> dict[str, Any]:
        own = ("_derived", "_changes")
        return {name: value for name, value in vars(self).items() if name not in own}

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Refuse other fits while the block runs; restore the attributes if it raises."""
        with self.changes.fit():
            before = dict(vars(self))
            vars(self).pop("provenance", None)
            try:
                yield
            except BaseException:
                vars(self).clear()
                vars(self).update(before)
                raise

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what training has found, as JSON values and as arrays."""

    @abstractmethod
    def _unpack(self, fitted: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Read and validate what `_pack` returned."""

    def save(self, file: File) -> None:
        """Write the model into one safetensors file.

        Parameters
        ----------
        file
            A path, which gets the suffix .safetensors if it has none, or a binary file. A path
            is replaced in one go: whatever happens, it holds the old model or the new one.
        """
        if MODELS.get(type(self).__name__) is not type(self):
            raise TypeError(
                f"{type(self).__name__} is no model of safecf, and so load would not know it; "
                f"save a {type(self).__mro__[1].__name__}, or pickle it"
            )
        fitted, arrays = self._pack()
        options = self.get_params()
        check_options(options, type(self))
        if not isinstance(options.get("random_state"), int | np.integer | None):
            options["random_state"] = fitted["seed"]
        header: dict[str, Any] = {"class": type(self).__name__, "options": options}
        header["fitted"] = fitted
        if self.provenance is not None:
            check_type("provenance", self.provenance, dict, "give a dict, or None")
            check_kept("provenance", self.provenance)
            header["provenance"] = self.provenance
        files.write(file, files.MODEL, header, arrays)

    @classmethod
    def load(cls, file: File) -> Self:
        """Read a model from a path or a binary file; no code in it is ever run.

        Called on a base class it returns a model of whatever class the file holds.
        """
        with files.naming(file):
            header, arrays = files.read(file, files.MODEL)
            kind = MODELS.get(files.field(header, "class", str))
            if kind is None:
                raise FileFormatError(
                    f"it holds a {header['class']!r}, known are {', '.join(MODELS)}; "
                    "try a newer version of safecf"
                )
            if not issubclass(kind, cls):
                raise FileFormatError(
                    f"it holds a {kind.__name__}, not a {cls.__name__}; "
                    f"try {kind.__name__}.load, or safecf.load"
                )
            options = {**kind.earlier_options, **files.field(header, "options", dict)}
            unknown = options.keys() - parameters(kind).keys()
            if unknown:
                raise FileFormatError(
                    f"{kind.__name__} has no option {min(unknown)!r}; try a newer version of safecf"
                )
            try:
                check_options(options, kind)
            except (TypeError, ValueError) as problem:
                raise FileFormatError(f"an option is damaged: {problem}") from problem
            model = kind(**options)
            model._unpack(files.field(header, "fitted", dict), arrays)
            if "provenance" in header:
                model.provenance = files.field(header, "provenance", dict)
        return model


MODELS: dict[str, type["Recommender"]] = {}
AnyModel = TypeVar("AnyModel", bound="type[Recommender]")


def register(model: AnyModel) -> AnyModel:
    """Add a model class to `MODELS`, the table of all that can be loaded and tested."""
    MODELS[model.__name__] = model
    return model
