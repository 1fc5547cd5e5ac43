"""MovieLens: ratings of films from 1 to 5 stars; 4 and more are positive feedback.

Reference: Harper and Konstan, The MovieLens Datasets: History and Context, TiiS 2015.
"""

from safecf.data.datasets.dataset import DataSet
from safecf.data.reading.layout import Layout

LICENCE = "for research, not to be passed on; cite Harper and Konstan (2015)"
PARQUET = Layout(rating="rating")

ML_1M = DataSet(
    name="ml-1m",
    title="MovieLens-1M",
    url="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
    md5="c4d9eecfca2ab87c1945afe126590906",
    licence=LICENCE,
    files={
        "ratings.dat": Layout(0, 1, rating=2, timestamp=3, separator="::", header=False),
        "ml-1m.parquet": PARQUET,
    },
    min_rating=4,
    heldout=1_000,
)

ML_20M = DataSet(
    name="ml-20m",
    title="MovieLens-20M",
    url="https://files.grouplens.org/datasets/movielens/ml-20m.zip",
    md5="cd245b17a1ae2cc31bb14903e1204af3",
    licence=LICENCE,
    files={
        "ratings.csv": Layout("userId", "movieId", "rating", timestamp="timestamp"),
        "ml-20m.parquet": PARQUET,
    },
    min_rating=4,
    heldout=10_000,
)
