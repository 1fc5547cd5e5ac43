"""The taste profiles of the Million Song Dataset: how often a user played a song.

Reference: Bertin-Mahieux et al., The Million Song Dataset, ISMIR 2011.
"""

from safecf.data.datasets.dataset import DataSet
from safecf.data.reading.layout import Layout

MSD = DataSet(
    name="msd",
    title="the Million Song Dataset's taste profiles",
    url="http://millionsongdataset.com/sites/default/files/challenge/train_triplets.txt.zip",
    licence="for research; cite Bertin-Mahieux et al. (2011)",
    files={
        "train_triplets.txt": Layout(0, 1, weight=2, separator="\t", header=False),
        "msd.parquet": Layout(weight="count"),
    },
    heldout=50_000,
    min_user_interactions=20,
    min_item_interactions=200,
)
