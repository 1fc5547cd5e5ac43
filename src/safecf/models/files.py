"""Files of models and checkpoints: safetensors, with all but the arrays in one JSON header.

Nothing is ever unpickled, and everything is validated before it is used. From format 2 on there is
a checksum over the header and the arrays, against accidents. It does not tell who wrote the file.
"""

import contextlib
import hashlib
import json
import os
import reprlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from safecf.atomic import check_replaceable, replace_file
from safecf.checks import check_plain
from safecf.data.matrices.ids import IdArray, find_repeated
from safecf.errors import FileFormatError, shown
from safecf.models.json_values import plain, revived

SUFFIX = ".safetensors"
FORMAT = 2
CHECKED = 2  # the first format with a checksum
MODEL = "model"
CHECKPOINT = "checkpoint"
LONGEST_COMPLAINT = 500
LONGEST_NAME = 255  # bytes, on all common file systems
LONGEST_HEADER = 100_000_000  # bytes; safetensors reads no more
DAMAGED = "it is damaged, or no safetensors file; copy it again, or save the model again"
ADVICE = {MODEL: "read it with safecf.load", CHECKPOINT: "give it to fit by resume=FILE"}

File = str | os.PathLike[str] | IO[bytes]
Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


def with_suffix(path: str | os.PathLike[str]) -> Path:
    """Return the path with .safetensors at its end."""
    name = os.fspath(path)
    return Path(name if name.endswith(SUFFIX) else name + SUFFIX)


def located(path: str | os.PathLike[str]) -> Path:
    """Return the file of exactly this name, or else the one with .safetensors at its end."""
    return Path(path) if os.path.isfile(path) else with_suffix(path)


def check_path(name: str, path: object) -> None:
    """Raise if the argument of this name is not the path of a file, there or not."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"{name}={shown(path)} is no path; try {name}='model{SUFFIX}'")
    try:
        encoded = os.fsencode(with_suffix(text))
    except UnicodeEncodeError:  # half a character
        encoded = b"\0"
    if os.path.basename(text) in ("", ".", "..", SUFFIX) or b"\0" in encoded:
        raise ValueError(f"{shown(text)} does not name a file; give a path such as 'model{SUFFIX}'")
    if len(os.path.basename(encoded)) > LONGEST_NAME:
        raise ValueError(f"{shown(text)} is too long for the name of a file; give a shorter one")


def _source(path: str | os.PathLike[str]) -> Path:
    """Return the file to read; raise if there is none, or reading it might never end."""
    check_path("file", path)
    found = located(path)
    for each in (Path(path), found):
        check_plain(each)
    if not found.is_file():
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path} is a folder; give the path of a file")
        raise FileNotFoundError(
            f"{found}: there is no such file, seen from {Path.cwd()}; check the path"
        )
    return found


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path that `write` will use; raise if it is not that of a file in a folder."""
    check_path("file", path)
    target = with_suffix(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent}; create it first")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the path of a file")
    return target


def check_checkpoint_target(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the header of the checkpoint that one written there would replace, if there is one.

    Raise if it cannot be written, or would replace anything but a checkpoint.
    """
    target = check_target(path)
    check_plain(target)
    check_replaceable(target)
    if not target.exists() or target.stat().st_size == 0:
        return None
    found = "no checkpoint"
    with contextlib.suppress(OSError, FileFormatError), target.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = _header(_text(file.read(min(length, LONGEST_HEADER))))
        kind = header.get("kind")
        if kind == CHECKPOINT:
            return header
        found = f"a {reprlib.repr(kind)[1:-1]}"
    raise FileExistsError(
        f"{target} is {found}, and checkpoint= would replace it; give another path, or delete the "
        "file first"
    )


def write(file: File, kind: str, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write one file: the arrays, and as JSON its `kind` and the rest of the `header`."""
    if isinstance(file, str | os.PathLike):
        file = check_target(file)
    elif not hasattr(file, "write"):
        raise TypeError(
            f"file={shown(file)} is neither a path nor a binary file; try 'model{SUFFIX}'"
        )
    text = json.dumps(plain({"format": FORMAT, "kind": kind, **header}), allow_nan=False)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = serialise(contiguous, metadata={"safecf": sealed(text, contiguous)})
    if isinstance(file, Path):
        replace_file(file, content)
    else:
        try:
            file.write(content)
        except TypeError as problem:
            raise TypeError("file is open for text, not for bytes; open it as 'wb'") from problem


def sealed(text: str, arrays: Arrays) -> str:
    """Return the text of a JSON object with the checksum of itself and the arrays in front.

    >>> sealed('{"format": 2}', {})
    '{"checksum": "6b25ac53...", "format": 2}'
    """
    return f'{{"checksum": "{checksum(text, arrays)}", {text[1:]}'


def checksum(text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of the header's text, and of the arrays with their names and types.

    >>> checksum("{}", {"a": np.zeros(2)})[:8]
    '71f0a4ef'
    """
    digest = hashlib.sha256(f"{len(text)} {text}".encode(errors="surrogatepass"))
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name!r} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextlib.contextmanager
def naming(file: File) -> Iterator[None]:
    """Prefix errors about a file's contents with its name."""
    try:
        yield
    except FileFormatError as problem:
        name = located(file) if isinstance(file, str | os.PathLike) else "the file"
        raise FileFormatError(f"{name}: {str(problem)[:LONGEST_COMPLAINT]}") from problem.__cause__


def read(file: File, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file of the given kind."""
    content: Any
    if isinstance(file, str | os.PathLike):
        content = _source(file).read_bytes()
    elif hasattr(file, "read"):
        content = file.read()
        if isinstance(content, str):
            raise TypeError("file is open for text, not for bytes; open it as 'rb'")
    else:
        raise TypeError(
            f"file={shown(file)} is neither a path nor a binary file; try 'model{SUFFIX}'"
        )
    try:
        arrays = parse(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise FileFormatError(f"{DAMAGED} ({reprlib.repr(str(problem))})") from problem
    length = int.from_bytes(content[:8], "little")
    text = _text(content[8 : 8 + length])
    header = _header(text)
    found = field(header, "format", int)
    if not 1 <= found <= FORMAT:
        raise FileFormatError(
            f"its format is {reprlib.repr(found)}, known is up to {FORMAT}; "
            "try a newer version of safecf"
        )
    if (found >= CHECKED or "checksum" in header) and not _is_intact(text, header, arrays):
        raise FileFormatError(f"its checksum does not fit its contents: {DAMAGED}")
    if field(header, "kind", str) != kind:
        advice = ADVICE.get(header["kind"], "try a newer version of safecf")
        raise FileFormatError(f"it is a {header['kind']}, not a {kind}; {advice}")
    return header, arrays


def _is_intact(text: str, header: Mapping[str, Any], arrays: Arrays) -> bool:
    """Whether the text is what `sealed` made of itself without the checksum."""
    found = header.get("checksum")
    front = len('{"checksum": "", ') + hashlib.sha256().digest_size * 2
    return found == checksum("{" + text[front:], arrays)


def _text(outer: bytes) -> str:
    """Return our own header's text, which is in the metadata of safetensors' header."""
    try:
        text = json.loads(outer)["__metadata__"]["safecf"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise FileFormatError("it was not written by safecf; give a file that a model has saved")
    return text


def _header(text: str) -> dict[str, Any]:
    """Return our own header."""
    try:
        header = revived(json.loads(text, parse_constant=_refuse))
    except (TypeError, ValueError, RecursionError) as problem:
        raise FileFormatError(f"its header is damaged; {DAMAGED}") from problem
    if not isinstance(header, dict):
        raise FileFormatError(f"its header is damaged; {DAMAGED}")
    return header


def field(record: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return `record[name]`, which has to be of this type; a float may be written as an integer."""
    value = record.get(name)
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind or (isinstance(value, int) and abs(value) >= 2**63):
        raise FileFormatError(
            f"{name!r} is {reprlib.repr(value)}, not of type {kind.__name__}; save it again"
        )
    return value


def shape(record: Mapping[str, Any]) -> tuple[int, int]:
    """Return `record["shape"]`: a number of users and a number of items."""
    found = field(record, "shape", list)
    if [type(size) for size in found] != [int, int] or min(found) < 1:
        raise FileFormatError(f"'shape' is {reprlib.repr(found)}, not two sizes; save it again")
    return found[0], found[1]


def array(
    arrays: Arrays, name: str, shape: tuple[int | None, ...], *dtypes: type[np.generic]
) -> NDArray[Any]:
    """Return a finite, writable array of one of the types; None stands for any length."""
    found = arrays.get(name)
    if found is None:
        raise FileFormatError(f"the array {name!r} is missing; save it again")
    fits = len(shape) == found.ndim and all(
        want in (None, size) for want, size in zip(shape, found.shape, strict=True)
    )
    if not fits or found.dtype.type not in dtypes:
        raise FileFormatError(
            f"the array {name!r} is {found.dtype}{list(found.shape)}, where "
            f"{np.dtype(dtypes[0])}{[size or 'any' for size in shape]} is needed; save it again"
        )
    if not np.isfinite(found).all():
        raise FileFormatError(f"the array {name!r} holds values that are not finite; save it again")
    return np.require(found, requirements=["C", "A", "W"])


def pack_ids(name: str, ids: IdArray | None) -> Arrays:
    """Return ids as arrays: integers as they are, strings as UTF-8 bytes and offsets."""
    if ids is None:
        return {}
    if ids.dtype != object:
        return {name: np.asarray(ids, dtype=np.int64)}
    encoded = [str(value).encode() for value in ids.tolist()]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {
        f"{name}.utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.offsets": offsets,
    }


def unpack_ids(arrays: Arrays, name: str, fewest: int, most: int) -> IdArray | None:
    """Undo `pack_ids`; raise unless there are `fewest` to `most` ids, all different."""
    damaged = f"the ids {name!r} are damaged; save it again"
    if f"{name}.utf8" in arrays:
        text = array(arrays, f"{name}.utf8", (None,), np.uint8)
        offsets = array(arrays, f"{name}.offsets", (None,), np.int64)
        ends = [offsets.size > 0 and offsets[0] == 0 and offsets[-1] == text.size]
        if name in arrays or not all(ends) or (np.diff(offsets) < 0).any():
            raise FileFormatError(damaged)
        content, places = text.tobytes(), offsets.tolist()
        try:
            strings = [content[begin:end].decode() for begin, end in pairwise(places)]
        except UnicodeDecodeError as problem:
            raise FileFormatError(damaged) from problem
        ids: IdArray = np.array(strings, dtype=object)
    elif name in arrays:
        ids = array(arrays, name, (None,), np.int64)
    else:
        return None
    if not fewest <= ids.size <= most or find_repeated(ids) is not None:
        raise FileFormatError(damaged)
    return ids


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
