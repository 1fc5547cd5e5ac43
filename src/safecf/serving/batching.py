"""`Batcher`: one thread answers all requests that have come while it was busy, together."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class BusyError(RuntimeError):
    """Too many requests are waiting."""


class Batcher(Generic[Q, A]):
    """Answers single requests by a function of batches, on a thread of its own.

    A batch is whatever has come while the last one was answered, up to `most` requests: nobody
    waits for others to come. More than `waiting` requests in line are refused.

    >>> batcher = Batcher(lambda numbers: [n**2 for n in numbers])
    >>> await batcher.ask(3)
    9
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Sequence[A | Exception]],
        most: int = 64,
        waiting: int = 1024,
    ) -> None:
        self._answer = answer
        self.most, self.waiting = most, waiting
        self._jobs: queue.SimpleQueue[tuple[Q, asyncio.Future[A]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="safecf-answers", daemon=True)
        self._thread.start()

    @property
    def length(self) -> int:
        """How many requests are in line."""
        return self._jobs.qsize()

    async def ask(self, request: Q) -> A:
        """Return the answer, or raise what the function returned instead of it."""
        if self.length >= self.waiting:
            raise BusyError(f"the line is full, at {self.waiting}; try again in a second")
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._jobs.put((request, future))
        return await future

    def close(self) -> None:
        """Answer what is in line, then end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch = [job]
            while len(batch) < self.most:
                try:
                    another = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if another is None:
                    self._jobs.put(None)
                    break
                batch.append(another)
            # who has gone away meanwhile is not answered
            batch = [each for each in batch if not each[1].cancelled()]
            if batch:
                self._finish(batch, self._answers([request for request, _ in batch]))

    def _answers(self, requests: Sequence[Q]) -> Sequence[A | Exception]:
        try:
            return self._answer(requests)
        except Exception as problem:
            return [problem] * len(requests)

    def _finish(
        self, batch: Sequence[tuple[Q, "asyncio.Future[A]"]], answers: Sequence[A | Exception]
    ) -> None:
        """Hand the answers to the event loop, all at once."""

        def deliver() -> None:
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

        loop = batch[0][1].get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver)
