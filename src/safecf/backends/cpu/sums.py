"""The quantile step's passes over losses, in C++."""

from safecf.als.population import NumpySums


class NativeSums(NumpySums):
    """Interim: as NumPy."""

    def __init__(self, num_threads: int, isa: str) -> None:
        self._run = num_threads, isa
