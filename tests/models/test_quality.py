"""Golden numbers: the paper's systems on MovieLens-1M, where the data is there."""

import numpy as np
import pytest

from safecf import datasets, evaluate
from safecf.models.presets import presets

pytestmark = pytest.mark.slow

COLUMNS = [("recall@20", 1.0), ("recall@50", 1.0), ("recall@20", 0.3), ("recall@50", 0.3)]
# In the order of the columns: the paper's table, and for iALS++ and SAFER2++ the authors' code.
PUBLISHED = {
    "iALS": [0.3459, 0.4710, 0.1168, 0.2364],
    "Mult-VAE": [0.3329, 0.4539, 0.1106, 0.2245],
    "ERM-MF": [0.3473, 0.4655, 0.1181, 0.2254],
    "CVaR-MF": [0.3330, 0.4560, 0.1086, 0.2318],
    "SAFER2": [0.3524, 0.4797, 0.1269, 0.2437],
    "SAFER2, Epanechnikov": [0.3517, 0.4742, 0.1267, 0.2356],
    "iALS++": [0.3447, 0.4712, 0.1151, 0.2369],
    "SAFER2++": [0.3529, 0.4813, 0.1266, 0.2482],
}
# Shorter than in the table, where they take minutes; the settings of Mult-VAE, too, are from
# validation users.
QUICK = {"CVaR-MF": {"iterations": 300}, "Mult-VAE": {"iterations": 60, "step_size": 0.005}}
SEEDS = {"CVaR-MF": 2, "Mult-VAE": 2, "iALS++": 3, "SAFER2++": 3}
WITHIN = {"Mult-VAE": 0.008}
CLOSED_FORM = [0.3628, 0.4758, 0.1297, 0.2385]  # of EASE, in float64


@pytest.fixture(scope="module")
def split(real_data):
    return datasets.paper_split("ml-1m", real_data / "ml-1m.parquet")


def measure(split, name, **options):
    model = presets("ml-1m", "paper")[name].make(**QUICK.get(name, {}), **options)
    model.fit(split.train, show_progress=False)
    found = evaluate(model, split, k=(20, 50), metrics=["recall"])
    return [found.tail(metric, level) for metric, level in COLUMNS]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_table(split, name):
    """The mean over the seeds is within 0.003 of what was published, or better, in all columns.

    One standard error is granted on top: the bits, and with them the seeds' luck, depend on the
    kind of CPU. The page of the experiment table-1 shows the means without it.
    """
    if name == "Mult-VAE":
        pytest.importorskip("torch", reason="MultVAE trains with torch")
    seeds = range(SEEDS.get(name, 5))
    found = np.array([measure(split, name, random_state=seed) for seed in seeds])
    luck = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    least = np.array(PUBLISHED[name]) - WITHIN.get(name, 0.003)
    assert (found.mean(axis=0) + luck >= least).all(), found.mean(axis=0)


def test_ease_is_the_closed_form(split):
    np.testing.assert_allclose(measure(split, "EASE"), CLOSED_FORM, atol=0.0005)
