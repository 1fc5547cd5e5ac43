"""`Changes`: one fit or partial fit of a model at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Changes:
    """Refuses to change a model while it is being fitted; partial fits wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fitting = False

    @contextmanager
    def fit(self) -> Iterator[None]:
        """Refuse all other changes while the block runs."""
        with self._lock:
            self.check("fit")
            self._fitting = True
        try:
            yield
        finally:
            self._fitting = False

    @contextmanager
    def partial_fit(self) -> Iterator[None]:
        """Let all other changes wait while the block runs."""
        with self._lock:
            self.check("a partial fit")
            yield

    def check(self, what: str) -> None:
        """Raise if a fit is running."""
        if self._fitting:
            raise RuntimeError(
                f"{what} was called while a fit of the same model is running, in another thread or "
                "in the fit's callback; wait until it ends, or use a copy: copy.deepcopy(model)"
            )
