"""`Live`: the models that are served now, and their replacement while requests go on."""

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safecf.errors import FileFormatError, choose
from safecf.evaluation import Comparison, Evaluation
from safecf.evaluation.json_records import COMPARISON, to_json
from safecf.models import Recommender
from safecf.models.files import located
from safecf.serving.catalogue import Catalogue, read_facts
from safecf.serving.engine import Engine
from safecf.serving.requests import Answer, Request
from safecf.serving.settings import Settings

MODEL: Final = "model"
BASELINE: Final = "baseline"

Stamp = dict[str, tuple[int, int, int] | None]


@dataclass(frozen=True)
class Loaded:
    """What the files held when they were read; `generation` counts from 1."""

    engines: dict[str, Engine]
    catalogue: Catalogue
    evaluation: dict[str, Any] | None
    generation: int
    since: float

    def engine(self, name: str) -> Engine:
        """Return the model or the baseline."""
        return choose("model", name, self.engines)

    def answer(self, requests: Sequence[Request]) -> list[Answer | Exception]:
        """Answer all requests, those of each model together."""
        answers: dict[int, Answer | Exception] = {}
        for name in {request.model for request in requests}:
            places = [at for at, request in enumerate(requests) if request.model == name]
            try:
                found = self.engine(name).answer([requests[at] for at in places])
                answers |= zip(places, found, strict=True)
            except ValueError as problem:  # there is no such model
                answers |= dict.fromkeys(places, problem)
        return [answers[at] for at in range(len(requests))]


def load(settings: Settings, generation: int = 1) -> Loaded:
    """Read and check all files, and prepare the models for their first answers."""
    roles = [role for role in (MODEL, BASELINE) if role in settings.files]
    data = settings.data() if callable(settings.data) else settings.data
    engines = {role: Engine(Recommender.load(settings.files[role]), data) for role in roles}
    first = engines[MODEL]
    if BASELINE in engines and not set(first.items.ids) & set(engines[BASELINE].items.ids):
        raise FileFormatError(
            f"{settings.baseline}: none of its items is one of {settings.model}; train both on the "
            "same data"
        )
    facts = None
    if settings.items is not None:
        facts = read_facts(settings.files["items"], first.items.ids)
        for place, item in enumerate(first.items.ids):
            if item in facts:
                facts[item]["popularity"] = round(float(first.popularity[place]), 6)
    evaluation = None
    if settings.evaluation is not None:
        evaluation = read_curves(settings.files["evaluation"])
    for engine in engines.values():
        engine.warm()
    catalogue = Catalogue(first.items.ids, first.popularity, facts)
    return Loaded(engines, catalogue, evaluation, generation, time.time())


def read_curves(path: Path) -> dict[str, Any]:
    """Read an evaluation or a comparison; return the tail means of every model by metric."""
    try:
        record = json.loads(path.read_bytes())
    except ValueError as problem:
        raise FileFormatError(f"{path}: {problem}; write it with safecf compare --out") from None
    if isinstance(record, dict) and record.get("format") == COMPARISON:
        found = Comparison.from_dict(record)
        evaluations = [found.baseline, *found.others]
    else:
        evaluations = [Evaluation.from_dict(record)]
    levels = sorted(evaluations[0].tails)
    curves = {
        metric: {each.model: [each.tail(metric, level) for level in levels] for each in evaluations}
        for metric in evaluations[0].scored_metrics
    }
    users = int(evaluations[0].users.target_count.size)
    found_curves: dict[str, Any] = to_json({"levels": levels, "metrics": curves, "users": users})
    return found_curves


class Live:
    """The models of the settings' files; `refresh` replaces them when the files have changed.

    A file that cannot be read changes nothing but `problem`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._seen = self._stamp()
        self.current = load(settings)
        self.problem: str | None = None
        self.reloads = self.failures = 0

    def refresh(self, *, force: bool = False) -> bool:
        """Load the files if they have changed since the last look; return whether they were."""
        with self._lock:
            stamp = self._stamp()
            if stamp == self._seen and not force:
                return False
            self._seen = stamp
            try:
                self.current = load(self._settings, self.current.generation + 1)
            except Exception as problem:
                self.problem = f"{type(problem).__name__}: {problem}"
                self.failures += 1
                return False
            self.problem = None
            self.reloads += 1
            return True

    def _stamp(self) -> Stamp:
        """Return when the files were changed, how long they are, and which files they are."""
        return {role: _stamp_of(path) for role, path in self._settings.files.items()}


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(located(path))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
