"""Data sets by name, any file by its columns, and synthetic data.

>>> log = datasets.load("ml-1m", path="ml-1m.zip")
>>> log = datasets.read("clicks.csv.gz", user="visitor", item="page", timestamp="time")
"""

from safecf.data.datasets.dataset import DataSet
from safecf.data.datasets.loading import DATASETS, load, paper_split, read
from safecf.data.datasets.synthetic import synthetic
from safecf.data.splits.log import Log

__all__ = ["DATASETS", "DataSet", "Log", "load", "paper_split", "read", "synthetic"]
