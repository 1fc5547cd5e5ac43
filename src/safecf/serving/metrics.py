"""`Metrics`: counts and times of the service, as Prometheus reads them."""

import resource
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Histogram:
    """Counts of values up to each of the bounds; the last count is of those above all.

    >>> histogram = Histogram((1, 2)); histogram.add(1.5); histogram.counts
    [0, 1, 0]
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Yield the cumulative counts, their sum, and their number."""
        reached = 0
        before = f"{labels}," if labels else ""
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            reached += count
            yield f'{name}_bucket{{{before}le="{bound}"}} {reached}'
        around = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{around} {self.total:.9g}"
        yield f"{name}_count{around} {reached}"


class Metrics:
    """What is counted while requests are answered.

    Requests are counted on the event loop, and batches on the thread that answers them: nothing
    is written by two threads.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds = {path: Histogram(SECONDS) for path in (*paths, "other")}
        self.batches = Histogram(SIZES)
        self.in_flight = 0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request; paths that are not served count as "other"."""
        known = path if path in self.seconds else "other"
        self.requests[known, status] += 1
        self.seconds[known].add(seconds)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all metrics; `gauges` are further ones by name, each with its help and value."""
        lines = [
            "# HELP safecf_requests_total Requests by path and status.",
            "# TYPE safecf_requests_total counter",
        ]
        lines += [
            f'safecf_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.requests.items())
        ]
        lines += [
            "# HELP safecf_request_seconds Time from the head of a request to its whole answer.",
            "# TYPE safecf_request_seconds histogram",
        ]
        for path, histogram in self.seconds.items():
            if any(histogram.counts):
                lines += histogram.lines("safecf_request_seconds", f'path="{path}"')
        lines += [
            "# HELP safecf_batch_size Requests that were answered together.",
            "# TYPE safecf_batch_size histogram",
            *self.batches.lines("safecf_batch_size"),
        ]
        own = {
            "safecf_in_flight": ("Requests that are being answered.", self.in_flight),
            "safecf_peak_resident_bytes": ("Largest resident memory so far.", _peak()),
        }
        for name, (meaning, value) in (own | dict(gauges)).items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", f"{name} {value:.15g}"]
        return "\n".join(lines) + "\n"


def _peak() -> int:
    """Return the largest resident memory of the process, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
