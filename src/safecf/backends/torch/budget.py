"""The memory of a device: how large temporaries may be, and what is done when it runs out."""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import torch

from safecf.free_memory import gigabytes

# Temporaries on the CPU have up to so many numbers. On a GPU a power of 2, so that GPUs of about
# the same size cut the work alike: a temporary takes 1/256 to 1/128 of the memory.
NUMBERS = 2**24
SHARE = 512
# The work is not cut any smaller than this.
FLOOR = 2**16
# At most so many temporaries of full size are in memory at the same time.
TEMPORARIES = 16

# What errors say that are no OutOfMemoryError: CUDA's and Triton's, cuBLAS's and cuSOLVER's, and
# that of PyTorch on the CPU.
NO_MEMORY = "out of memory", "_STATUS_ALLOC_FAILED", "can't allocate memory"

Result = TypeVar("Result")
_one_at_a_time = threading.RLock()
_thread = threading.local()  # `entered`: the device that this thread is at work on


class Edges(Protocol):
    """Where rows begin, and the last one ends: a range, a list, or an array of integers."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any: ...


class Budget:
    """At most `numbers` numbers for a temporary, or what a single row needs if that is more.

    Verbs read `numbers` whenever they cut work, and do the work by `run` or `each`: these halve it
    and start again when memory runs out. `memory` is what the device has, in bytes; None is all
    of a GPU's, and unlimited on the CPU.
    """

    def __init__(
        self, device: torch.device, numbers: int | None = None, memory: int | None = None
    ) -> None:
        self.device, self.memory, self._numbers = device, memory, numbers
        self._held: dict[str, WeakValueDictionary[int, Any]] = {
            "interactions": WeakValueDictionary(),
            "factors": WeakValueDictionary(),
        }

    @property
    def numbers(self) -> int:
        """The size of temporaries; a GPU is asked for its own at first use."""
        if self._numbers is None:
            total = self.total()
            self._numbers = NUMBERS if total is None else 1 << (total // SHARE).bit_length() - 1
        return self._numbers

    def hold(self, kind: str, found: Result) -> Result:
        """Remember what is placed, for as long as it is in use; it has `nbytes`."""
        self._held[kind][id(found)] = found
        return found

    def held(self, kind: str) -> int:
        """Return how many bytes of "interactions" or "factors" are placed."""
        return sum(each.nbytes for each in self._held[kind].values())

    def total(self) -> int | None:
        """Return how many bytes the device has; None if there is no limit."""
        if self.memory is None and self.device.type == "cuda":
            return int(torch.cuda.mem_get_info(self.device)[1])
        return self.memory

    def free(self) -> int | None:
        """Return how many bytes are free, PyTorch's cache among them; None if there is no limit."""
        if self.memory is not None:
            return self.memory - sum(self.held(kind) for kind in self._held)
        if self.device.type != "cuda":
            return None
        reserved = torch.cuda.memory_reserved(self.device)
        cached = reserved - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0] + cached)

    def working_space(self) -> int:
        """Return how many bytes temporaries take at the same time."""
        return 4 * TEMPORARIES * self.numbers

    def fits(self, size: int) -> bool:
        """Whether so many bytes fit beside what training adds to the factors that are placed.

        That is at most twice these factors (see docs/memory.md) and the working space.
        """
        free = self.free()
        return free is None or size <= free - 2 * self.held("factors") - self.working_space()

    def run(self, work: Callable[[], Result]) -> Result:
        """Return what the work does; if memory runs out, free caches, halve it, and start again.

        Work that fails has to leave everything as it was.
        """
        while True:
            try:
                with at_work(self.device):
                    return work()
            except RuntimeError as problem:
                if not out_of_memory(problem):
                    raise
                # its traceback holds temporaries, until here
            if self.numbers <= FLOOR:
                raise MemoryError(self._report())
            self._numbers = self.numbers // 2
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Report memory that runs out outside of `run`, where the work is not cut."""
        try:
            yield
        except RuntimeError as problem:
            if not out_of_memory(problem):
                raise
            raise MemoryError(self._report()) from None

    def each(self, edges: Edges, per: int, work: Callable[[slice], object]) -> None:
        """Call `work` for all rows, of which it gets so many at a time that a temporary fits.

        `edges`[r] is where row r begins, and a temporary has `per` numbers for each unit of it.
        Rows that are done are not done again when memory runs out.

        >>> Budget(torch.device("cpu"), numbers=10).each(range(6), 5, print)
        slice(0, 2, None)
        slice(2, 4, None)
        slice(4, 5, None)
        """
        first = 0
        while first < len(edges) - 1:
            first = self.run(partial(self._next, edges, per, first, work))

    def _next(self, edges: Edges, per: int, first: int, work: Callable[[slice], object]) -> int:
        last = cut(edges, first, self.numbers // max(1, per))
        work(slice(first, last))
        return last

    def _report(self) -> str:
        """Say what is in memory, and what to try."""
        total, free = self.total(), self.free()
        where = str(self.device)
        if total is not None and free is not None:
            where += f", which has {gigabytes(total)} of it, {gigabytes(max(0, free))} free"
        uncut = ", which cannot be cut any smaller" if self.numbers <= FLOOR else ""
        return (
            f"out of memory on {where}: interactions take {gigabytes(self.held('interactions'))}, "
            f"factors {gigabytes(self.held('factors'))}, and training up to twice as much as the "
            f"factors again, and {gigabytes(self.working_space())} as working space{uncut}; "
            "lower factors, end what else uses the device, or try device='cpu'"
        )


def out_of_memory(problem: Exception) -> bool:
    """Whether an error of PyTorch's, Triton's or CUDA's says that memory has run out.

    >>> out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ..."))
    True
    """
    if isinstance(problem, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(problem, RuntimeError) and any(each in str(problem) for each in NO_MEMORY)


@contextmanager
def at_work(device: torch.device, *, tf32: bool = False) -> Iterator[None]:
    """Launch kernels on a device, with products in float32 or TF32 whatever the process has set.

    That setting is the process's own: one thread works at a time. Inside of another block for the
    same device nothing happens, so that the outermost one decides on TF32.
    """
    if device.type != "cuda" or getattr(_thread, "entered", None) == device:
        yield
        return
    products: Any = torch.backends.cuda.matmul
    name: str = "allow_tf32"
    values: tuple[Any, Any] = (False, True)
    if hasattr(products, "fp32_precision"):
        name, values = "fp32_precision", ("ieee", "tf32")
    with _one_at_a_time, torch.cuda.device(device):
        outside, before = getattr(_thread, "entered", None), getattr(products, name)
        setattr(products, name, values[tf32])
        _thread.entered = device
        try:
            yield
        finally:
            _thread.entered = outside
            setattr(products, name, before)


def cut(edges: Edges, first: int, size: int) -> int:
    """Return the last row, exclusive, up to which rows from `first` on are at most `size` long.

    It is one row at least. Row r begins at `edges`[r].

    >>> cut([0, 3, 5, 20, 21], 0, 6), cut([0, 3, 5, 20, 21], 2, 6)
    (2, 3)
    """
    return max(first + 1, bisect_right(edges, edges[first] + size) - 1)
