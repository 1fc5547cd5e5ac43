"""`Live`: the models that are served now, and their replacement while requests go on."""

import gc
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from safecf.defaults import LEVEL
from safecf.errors import FileFormatError, choose, message_of
from safecf.evaluation import Comparison, Evaluation, compare
from safecf.evaluation.json_records import COMPARISON, options_to_json, to_json
from safecf.measures.bootstrap import Draws
from safecf.models import Recommender
from safecf.models.files import located
from safecf.serving.catalogue import Catalogue, read_facts
from safecf.serving.engine import Engine
from safecf.serving.requests import Answer, Request
from safecf.serving.settings import Settings

MODEL: Final = "model"
BASELINE: Final = "baseline"

FOLDERS = re.compile(r"""(?<![^\s'"(])/(?:[^/\s'"]+/)+""")  # of an absolute path

Stamps = dict[str, tuple[int, int, int] | None]


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


class Timed:
    """Says what is read, and how long all of it took.

    >>> with timed("model", "model.safetensors"): ...
    loading the model: model.safetensors
    """

    def __init__(self, say: Callable[[str], object] | None) -> None:
        self._say = say or (lambda _: None)
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str, source: object) -> Iterator[None]:
        """Time what is done inside."""
        self._say(f"loading the {what}: {source}")
        start = time.perf_counter()
        yield
        self._seconds[what] = time.perf_counter() - start

    def end(self) -> None:
        """Say the times."""
        parts = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self._seconds.items())
        self._say(f"loaded in {sum(self._seconds.values()):.1f} s ({parts})")


def load(
    settings: Settings, generation: int = 1, say: Callable[[str], object] | None = None
) -> Loaded:
    """Read and check all files, and prepare the models for their first answers."""
    timed, files = Timed(say), settings.files
    data = None
    if settings.data is not None:
        with timed("data", "what users have"):
            data = settings.data() if callable(settings.data) else settings.data
    engines: dict[str, Engine] = {}
    for role in (MODEL, BASELINE):
        if role in files:
            with timed(role, files[role]):
                model = Recommender.load(files[role])
                model = model if settings.device is None else model.to(settings.device)
                engines[role] = Engine(model, data)
                engines[role].warm()
    first = engines[MODEL]
    if BASELINE in engines and not set(first.items.ids) & set(engines[BASELINE].items.ids):
        raise FileFormatError(
            f"{settings.baseline}: none of its items is one of {settings.model}; train both on the "
            "same data"
        )
    facts = evaluation = None
    if settings.items is not None:
        with timed("items", files["items"]):
            facts = read_facts(files["items"], first.items.ids)
        for place, item in enumerate(first.items.ids):
            if item in facts:
                facts[item]["popularity"] = round(float(first.popularity[place]), 6)
    if settings.evaluation is not None:
        with timed("evaluation", files["evaluation"]):
            evaluation = read_curves(files["evaluation"], engines)
    catalogue = Catalogue(first.items.ids, first.popularity, facts)
    timed.end()
    return Loaded(engines, catalogue, evaluation, generation, time.time())


def read_curves(path: Path, engines: dict[str, Engine]) -> dict[str, Any]:
    """Read an evaluation or a comparison; return the tail means of every model by metric.

    `roles` says which of them are served: the name in the evaluation, by role. `verdicts` are what
    `compare` says about the served model beside the served baseline, by metric.
    """
    remedy = "write it with safecf compare --out"
    draws = Draws()
    try:
        record = json.loads(path.read_bytes())
        if isinstance(record, dict) and record.get("format") == COMPARISON:
            found = Comparison.from_dict(record)
            evaluations, draws = [*found.others, found.baseline], found.draws
        else:
            evaluations = [Evaluation.from_dict(record)]
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{path}: it is not JSON, but binary; {remedy}") from None
    except ValueError as problem:
        raise FileFormatError(f"{path}: {problem}; {remedy}") from None
    levels = sorted(evaluations[0].tails)
    curves = {
        metric: {each.model: [each.tail(metric, level) for level in levels] for each in evaluations}
        for metric in evaluations[0].scored_metrics
    }
    users = int(evaluations[0].users.target_count.size)
    found_curves: dict[str, Any] = to_json({"levels": levels, "metrics": curves, "users": users})
    roles = served_roles(evaluations, engines)
    served = [each for each in evaluations if each.model in roles.values()]
    said = {}
    if len(served) > 1:
        said = verdicts(compare(served, roles[BASELINE], **asdict(draws)))
    return found_curves | {"roles": roles, "verdicts": said}


def verdicts(comparison: Comparison) -> dict[str, list[str]]:
    """Return what `safecf compare` says about the worst-off, by metric, with its cautions."""
    return {
        metric: [
            *comparison.summary(metric, LEVEL).splitlines(),
            *filter(None, [comparison.baseline.caution(metric, LEVEL)]),
        ]
        for metric in comparison.metrics
    }


def served_roles(evaluations: Sequence[Evaluation], engines: dict[str, Engine]) -> dict[str, str]:
    """Return the names of the served models in an evaluation, by role.

    They are of the same class, and if possible with the same options. Of several, the model is the
    first one, and the baseline the last, which is that of a comparison.
    """
    left, roles = list(evaluations), {}
    for role, engine in engines.items():
        ordered = left if role == MODEL else left[::-1]
        same = [each for each in ordered if each.training.get("class") == engine.name]
        options = options_to_json(engine.model.get_params())
        exact = [each for each in same if each.training.get("params") == options]
        for each in (exact or same)[:1]:
            roles[role] = each.model
            left.remove(each)
    return roles


class Live:
    """The models of the settings' files; `refresh` replaces them when the files have changed.

    A file that cannot be read changes nothing but `problem`.
    """

    def __init__(self, settings: Settings, say: Callable[[str], object] | None = None) -> None:
        self._settings, self._say = settings, say
        self._loading = threading.RLock()
        self._waiting: Future[str | None] | None = None
        self._lock = threading.Lock()  # of `_waiting`
        self._seen = stamps(settings.files)
        self.current = load(settings, say=say)
        self.problem: str | None = None
        self.reloads = self.failures = 0

    def refresh(self, *, force: bool = False) -> bool:
        """Load the files if they have changed since the last look; return whether they were."""
        with self._loading:
            found = stamps(self._settings.files)
            if found == self._seen and not force:
                return False
            self._seen = found
            try:
                self.current = load(self._settings, self.current.generation + 1, self._say)
            except Exception as problem:
                said = message_of(problem) or type(problem).__name__
                self.problem = without_folders(said, self._settings.files.values())
                self.failures += 1
                if self._say is not None:
                    self._say(f"the old models stay: {said}")
                return False
            freeze()
            self.problem = None
            self.reloads += 1
            return True

    def reload(self) -> "Future[str | None]":
        """Load the files on a thread of its own; the result is the problem, if there is one.

        One load runs at a time. All who ask while it does share the next one, which begins after
        they have asked.
        """
        with self._lock:
            if self._waiting is None:
                self._waiting = Future()
                threading.Thread(target=self._run, name="safecf-reload", daemon=True).start()
            return self._waiting

    def _run(self) -> None:
        with self._loading:
            with self._lock:
                waiting, self._waiting = self._waiting, None
            self.refresh(force=True)
            if waiting is not None and waiting.set_running_or_notify_cancel():
                waiting.set_result(self.problem)


def without_folders(message: str, files: Iterable[Path]) -> str:
    """Return a message for clients, who need not know where files are.

    >>> without_folders("/srv/model.safetensors: it is damaged", [])
    'model.safetensors: it is damaged'
    """
    message = message.replace(f", seen from {Path.cwd()}", "")
    for path in files:
        message = message.replace(str(path), path.name)
    return FOLDERS.sub("", message)


def freeze() -> None:
    """Free what is no longer used, and take the rest out of garbage collections.

    Each full collection would look at all facts about items, while all clients wait.
    """
    gc.unfreeze()  # the old models, too
    gc.collect()
    gc.freeze()


def stamps(files: dict[str, Path]) -> Stamps:
    """Return when files were changed, how long they are, and which files they are."""
    found: Stamps = {}
    for role, path in files.items():
        try:
            stat = os.stat(located(path))
            found[role] = stat.st_mtime_ns, stat.st_size, stat.st_ino
        except OSError:
            found[role] = None
    return found
