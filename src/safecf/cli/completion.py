"""What a shell offers for arguments: names of data sets, models and metrics, and files."""

from collections.abc import Callable, Iterable
from glob import escape, glob
from pathlib import Path

Complete = Callable[[str], list[str]]

SUFFIX = ".safetensors"


def one_of(names: Iterable[str]) -> Complete:
    """Offer names.

    >>> one_of(["strong", "holdout"])("s")
    ['strong']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def name_or_file(names: Iterable[str], suffix: str = "") -> Complete:
    """Offer names, and the files with this suffix.

    >>> name_or_file(["ml-1m", "demo"])("ml")
    ['ml-1m', 'ml-20m.parquet']
    """
    offered = one_of(names)
    return lambda incomplete: [*offered(incomplete), *_files(incomplete, suffix)]


def metric(incomplete: str) -> list[str]:
    """Offer metrics, those of the best items with a cutoff.

    >>> metric("rec")
    ['recall@20']
    """
    from safecf.evaluation import METRICS, RANK_METRICS  # noqa: PLC0415

    names = [*(f"{name}@20" for name in METRICS), *RANK_METRICS]
    return one_of(names)(incomplete)


def _files(incomplete: str, suffix: str) -> list[str]:
    """Return the paths that begin so: folders, with a slash, and files with the suffix."""
    found = sorted(glob(escape(incomplete) + "*"))
    folders = [f"{each}/" for each in found if Path(each).is_dir()]
    return folders + [each for each in found if each.endswith(suffix) and Path(each).is_file()]
