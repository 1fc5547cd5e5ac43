"""The batcher: answers in order, errors alone, nothing lost."""

import asyncio
import threading
from itertools import chain

import pytest

from safecf.serving.batching import Batcher


class Squares:
    """Squares numbers in batches; waits until `go`, so that requests come together."""

    def __init__(self):
        self.go = threading.Event()
        self.batches = []

    def __call__(self, numbers):
        assert self.go.wait(30)
        self.batches.append(list(numbers))
        return [ValueError("negative") if number < 0 else number**2 for number in numbers]


def test_requests_that_wait_are_answered_together_and_each_gets_its_own():
    squares = Squares()
    batcher = Batcher(squares, most=16)

    async def ask():
        asked = [asyncio.ensure_future(batcher.ask(number)) for number in range(-1, 39)]
        await asyncio.sleep(0)
        squares.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    problem, *found = asyncio.run(ask())
    assert found == [number**2 for number in range(39)]
    assert isinstance(problem, ValueError)
    assert sorted(chain(*squares.batches)) == list(range(-1, 39))
    assert max(map(len, squares.batches)) == 16
    batcher.close()


def test_a_function_that_fails_fails_its_batch_and_not_the_thread():
    calls = []

    def answer(numbers):
        calls.append(numbers)
        if len(calls) == 1:
            raise RuntimeError("broken")
        return numbers

    batcher = Batcher(answer)
    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(batcher.ask(1))
    assert asyncio.run(batcher.ask(2)) == 2
    batcher.close()


def test_who_has_gone_away_is_not_answered():
    squares = Squares()
    batcher = Batcher(squares)

    async def ask():
        first = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0)
        while batcher.length:  # the thread has taken the first one, and waits
            await asyncio.sleep(0.001)
        gone, last = (asyncio.ensure_future(batcher.ask(number)) for number in (2, 3))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        squares.go.set()
        return await asyncio.gather(first, last)

    assert asyncio.run(ask()) == [1, 9]
    assert squares.batches == [[1], [3]]
    batcher.close()


def test_closing_answers_what_is_in_line():
    squares = Squares()
    batcher = Batcher(squares, most=2)

    async def ask():
        asked = [asyncio.ensure_future(batcher.ask(number)) for number in range(5)]
        await asyncio.sleep(0)
        squares.go.set()
        await asyncio.to_thread(batcher.close)
        return await asyncio.gather(*asked)

    assert asyncio.run(ask()) == [0, 1, 4, 9, 16]
