"""`Service`: the state behind the paths: the models, the line of requests, and the counts."""

import gc
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from safecf.serving.batching import Batcher, BusyError
from safecf.serving.live import MODEL, Live, Loaded, freeze
from safecf.serving.log import Log
from safecf.serving.metrics import Metrics
from safecf.serving.requests import Answer, Explained, Id, Recommend, Request
from safecf.serving.settings import Settings


class Service:
    """The state behind the paths: the models, the line of requests, and the counts."""

    def __init__(
        self, settings: Settings, paths: Sequence[str], say: Callable[[str], object] | None = None
    ) -> None:
        self.settings = settings
        self.log = Log(settings.log)
        self.live = Live(settings, say)
        self.metrics = Metrics(paths)
        self.batcher: Batcher[Request, bytes] | None = None
        self.draining = False  # answers ask clients to close their connections
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start to answer."""
        freeze()
        limits = self.settings.max_batch, self.settings.max_waiting
        self.batcher = Batcher(self._answer, *limits)
        self._stopped.clear()
        if self.settings.watch:
            threading.Thread(target=self._watch, name="safecf-watch", daemon=True).start()

    def stop(self) -> None:
        """Answer what is in line, and end."""
        self._stopped.set()
        if self.batcher is not None:
            self.batcher.close()
            self.batcher = None
        gc.unfreeze()

    async def ask(self, request: Request) -> bytes:
        """Return the answer of the models as they are when the request's turn comes."""
        if self.batcher is None:
            raise BusyError("the service is starting or ending; try again in a second")
        return await self.batcher.ask(request)

    def _answer(self, requests: Sequence[Request]) -> list[bytes | Exception]:
        loaded = self.live.current
        self.metrics.batches.add(len(requests))
        answers = zip(requests, loaded.answer(requests), strict=True)
        return [
            answer if isinstance(answer, Exception) else to_json(loaded, request, answer)
            for request, answer in answers
        ]

    def describe(self, ids: Sequence[Id]) -> dict[str, Any]:
        """Return the facts about the items that the model knows, and the unknown ids."""
        loaded = self.live.current
        found = list(zip(ids, loaded.engine(MODEL).items.find(ids), strict=True))
        known = [loaded.catalogue.describe(item) for item, place in found if place is not None]
        unknown = dict.fromkeys(item for item, place in found if place is None)
        return {"items": known, "unknown": list(unknown)}

    def history(self, user: Id) -> list[dict[str, Any]]:
        """Return the items that a known user has, and their weights."""
        loaded = self.live.current
        found = loaded.engine(MODEL).history(user)
        return [{**loaded.catalogue.describe(item), "weight": weight} for item, weight in found]

    def search(self, text: str, count: int) -> list[dict[str, Any]]:
        """Return the facts about items whose titles have these words."""
        catalogue = self.live.current.catalogue
        return [catalogue.describe(item) for item in catalogue.search(text, count)]

    def _watch(self) -> None:
        """Look after the files until the end."""
        while not self._stopped.wait(self.settings.watch):
            self.live.refresh()

    def state(self) -> dict[str, Any]:
        """Return what is served, and whether the last reload failed."""
        loaded = self.live.current
        return {
            "status": "stopping" if self.draining else "ok",
            "generation": loaded.generation,
            "since": loaded.since,
            "problem": self.live.problem,
            "models": {
                role: {
                    "class": engine.name,
                    "tail": engine.tail,
                    "users": len(engine.users),
                    "items": len(engine.items),
                }
                for role, engine in loaded.engines.items()
            },
        }

    def about(self) -> dict[str, Any]:
        """Return what the page has to know."""
        loaded, settings = self.live.current, self.settings
        return self.state() | {
            "titles": loaded.catalogue.has_titles,
            "histories": loaded.engine(MODEL).kind_of_users,
            "evaluation": loaded.evaluation,
            "limits": {"history": settings.max_history, "k": settings.max_k},
        }

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return what is measured now, with its meaning."""
        live = self.live
        waiting = 0 if self.batcher is None else self.batcher.length
        return {
            "safecf_waiting": ("Requests in line.", waiting),
            "safecf_generation": ("Counts the models since the start.", live.current.generation),
            "safecf_loaded_timestamp_seconds": ("When they were loaded.", live.current.since),
            "safecf_reloads_total": ("Reloads that have succeeded.", live.reloads),
            "safecf_reload_failures_total": ("Reloads that have failed.", live.failures),
        }


def to_json(loaded: Loaded, request: Request, answer: Answer) -> bytes:
    """Write an answer, with the facts about its items."""
    describe = loaded.catalogue.describe
    body: dict[str, Any] = {"model": loaded.engine(request.model).name}
    body["generation"] = loaded.generation
    if isinstance(answer, Explained):
        body |= {"item": describe(answer.item), "score": answer.score, "unknown": answer.unknown}
        body["items"] = _scored(describe, answer.ids, answer.contributions)
        return _written(body)
    if isinstance(request, Recommend):
        body |= {"popular": answer.popular, "history_removed": answer.history_removed}
        body["unknown"] = answer.unknown
    body["items"] = _scored(describe, answer.ids, answer.scores)
    return _written(body)


def _written(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _scored(
    describe: Callable[[Id], dict[str, Any]], ids: Sequence[Id], scores: Sequence[float]
) -> list[dict[str, Any]]:
    return [{**describe(item), "score": score} for item, score in zip(ids, scores, strict=True)]
