"""Damage to bytes and to JSON values, drawn at random."""

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

Generator = np.random.Generator
T = TypeVar("T")

# Bytes that mean something to a parser.
TOKENS = (
    *(b"", b"\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80", b"\xfe\xff", b"\xef\xbb\xbf"),
    *(b'"', b'""', b"'", b",", b"\n", b"\r\n", b"\r", b"\t", b";", b"::", b"\\", b"[", b"{", b"}"),
    *(b"NaN", b"Infinity", b"-1", b"1e999", b"null", b"9" * 400, b"-0", b"PAR1", b"PK\x03\x04"),
    *(b"\xed\xa0\x80", b"\xc3\x28", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"(" * 300, b"[" * 3000),
)
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**400),
    *(0.0, -0.0, 0.5, 1e-320, 1e30, 1e308, -1e308, "inf", "-inf", "nan", "auto", "", " ", "0", "1"),
    *(
        "\0",
        "\ud800",
        "x" * 5000,
        "__class__",
        "__init__",
        "os.system",
        "../../x",
        "{0}",
        "%s",
        "é",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [1, 2],
        [1, 2, 3],
        [-1, 5],
        [0, 0],
        [1.5, 2],
        ["a"],
        {"": 0},
        {"a": {}},
    ),
)


def pick(rng: Generator, options: Iterable[T]) -> T:
    """Draw one of the options."""
    known = list(options)
    return known[int(rng.integers(len(known)))]


def damage(rng: Generator, samples: Sequence[bytes]) -> bytes:
    """Damage one of the samples, by one to a few changes."""
    content = bytearray(pick(rng, samples))
    for _ in range(rng.geometric(0.7)):
        pick(rng, CHANGES)(rng, content, samples)
    return bytes(content)


def _flip(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    if content:
        content[_place(rng, content)] ^= 1 << int(rng.integers(8))


def _set(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    if content:
        content[_place(rng, content)] = int(rng.integers(256))


def _truncate(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    del content[_place(rng, content) :]


def _insert(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    at = _place(rng, content)
    if rng.random() < 0.5:
        content[at:at] = pick(rng, TOKENS)
    else:
        content[at:at] = rng.bytes(int(rng.integers(1, 40)))


def _replace(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    at, token = _place(rng, content), pick(rng, TOKENS)
    content[at : at + len(token)] = token


def _delete(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    at = _place(rng, content)
    del content[at : at + int(rng.integers(1, 100))]


def _swap(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    begin, middle, end = sorted(_place(rng, content) for _ in range(3))
    content[begin:end] = content[middle:end] + content[begin:middle]


def _repeat(rng: Generator, content: bytearray, _: Sequence[bytes]) -> None:
    begin, end = sorted(_place(rng, content) for _ in range(2))
    content[end:end] = content[begin:end]


def _splice(rng: Generator, content: bytearray, samples: Sequence[bytes]) -> None:
    """Continue with the end of another sample."""
    other = pick(rng, samples)
    begin = int(rng.integers(len(other) + 1)) if rng.random() < 0.5 else len(content)
    content[_place(rng, content) :] = other[begin:]


CHANGES = (_flip, _flip, _set, _truncate, _insert, _replace, _delete, _swap, _repeat, _splice)


def _place(rng: Generator, content: bytearray) -> int:
    """Return a position, one near the beginning or the end in half of all cases."""
    size = len(content)
    reach = min(size, 64)
    near = int(rng.integers(reach + 1))
    chance = rng.random()
    place = near if chance < 0.25 else size - near if chance < 0.5 else int(rng.integers(size + 1))
    return min(max(place, 0), max(size - 1, 0))


def hostile_json(rng: Generator, value: Any) -> Any:
    """Return a copy in which one to a few values are replaced, removed, repeated or exchanged."""
    holder = {"": copy.deepcopy(value)}
    for _ in range(rng.geometric(0.7)):
        parent, key = _spot(rng, holder)
        chance = rng.random()
        if chance < 0.6:
            parent[key] = copy.deepcopy(pick(rng, HOSTILE))
        elif chance < 0.7 and parent is not holder:
            del parent[key]
        elif chance < 0.8 and isinstance(parent, list):
            parent.insert(int(key), copy.deepcopy(parent[key]))
        elif chance < 0.85:
            parent[key] = nested(int(rng.integers(1, 100)))
        elif chance < 0.9 and isinstance(parent, dict):
            parent[str(pick(rng, HOSTILE))] = copy.deepcopy(parent[key])
        else:
            other, there = _spot(rng, holder)
            parent[key] = copy.deepcopy(other[there])
    return holder[""]


def nested(depth: int) -> Any:
    """Return lists in lists.

    >>> nested(3)
    [[[]]]
    """
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _spot(rng: Generator, holder: Any) -> tuple[Any, Any]:
    """Return a container within the holder and one of its keys."""
    parent: Any = holder
    key: Any = ""
    while True:
        value = parent[key]
        if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
            return parent, key
        parent, key = value, pick(rng, value if isinstance(value, dict) else range(len(value)))


def dumped(value: Any) -> bytes:
    """Return JSON; lone surrogates are escaped, numbers may be any."""
    return json.dumps(value).encode()
