"""The stored records, and how those of today are compared with them."""

import difflib
import json
import re

import numpy as np

from tests.golden import today

TODAY = {
    "defaults.json": today.defaults,
    "auto.json": today.automatic,
    "answers.json": lambda: {name: today.answers(today.fitted(name)) for name in today.MODELS},
    "http.json": today.exchanges,
    "report.txt": today.report_text,
}
CLOSE = 1e-4  # of the largest of the numbers that are compared
APART = 2e-3  # of the largest score: items that are nearer to each other may change places
FILES = sorted(f for f in today.HERE.glob("v*/*") if f.name != "answers.json")


def stored(name):
    text = (today.HERE / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def write(path, record):
    """Write a text, or JSON with one line for every innermost list."""
    text = record
    if path.suffix == ".json":
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        text = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\n *", " ", found[0]), text)
    path.write_text(text, encoding="utf-8")


def differences(found, wanted, where=""):
    """Where a record of today is not the stored one, one line each."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        if {*found} == {*wanted} == {"ids", "scores"}:
            return _other_ranking(found, wanted, where)
        lines = [f"{where}: {key!r} is new" for key in found if key not in wanted]
        lines += [f"{where}: {key!r} is gone" for key in wanted if key not in found]
        both = [key for key in found if key in wanted]
        return lines + [
            line for key in both for line in differences(found[key], wanted[key], f"{where} {key}")
        ]
    if isinstance(found, str) and isinstance(wanted, str) and "\n" in wanted:
        lines = difflib.ndiff(wanted.splitlines(), found.splitlines())
        return [f"{where}: {line}" for line in lines if line[0] in "+-"]
    if _are_numbers(found) and _are_numbers(wanted):
        same = _close(found, wanted)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = enumerate(zip(found, wanted, strict=True))
        return [line for n, pair in pairs for line in differences(*pair, f"{where} {n}")]
    else:
        same = type(found) is type(wanted) and found == wanted
    return [] if same else [f"{where}: {wanted!r} has become {found!r}"]


def _are_numbers(value):
    """One fraction, or a list of lists of numbers with fractions."""
    return isinstance(value, float) or (
        isinstance(value, list) and len(value) > 0 and all(map(_are_numbers, value))
    )


def _close(found, wanted):
    found, wanted = np.array(found), np.array(wanted)
    return (
        found.shape == wanted.shape
        and (np.abs(found - wanted) <= CLOSE * np.abs(wanted).max()).all()
    )


def _other_ranking(found, wanted, where):
    """Scores are close, ids the same where no other score is near; the last may have a rival."""
    scores = np.array(wanted["scores"])
    if not _close(found["scores"], wanted["scores"]):
        return [f"{where} scores: {wanted['scores']} have become {found['scores']}"]
    gaps = -np.diff(scores) > APART * np.abs(scores).max()
    alone = gaps & np.hstack([np.ones((len(gaps), 1), dtype=bool), gaps[:, :-1]])
    ids, others = (np.array(each["ids"])[:, :-1] for each in (found, wanted))
    lines = zip(*(each[alone & (ids != others)] for each in (ids, others)), strict=True)
    return [f"{where} ids: {other} has become {one}" for one, other in lines]
