"""Items as an index: the files, what a search in them finds, and what is said of it."""

import hashlib
import json
import sys
import warnings

import numpy as np
import pytest

from safecf import EASE, IALS, Interactions
from safecf.approximate import Check, Speed, export, formats
from safecf.approximate.exporting import format_of
from safecf.approximate.quality import recall
from safecf.datasets import synthetic


@pytest.fixture(scope="module")
def data():
    matrix = synthetic(500, 200, 9000, tastes=3).matrix
    return Interactions.from_csr(matrix, item_ids=[f"item {at}" for at in range(200)])


@pytest.fixture(scope="module")
def model(data):
    return IALS(8, iterations=3, random_state=0).fit(data, show_progress=False)


def restored(name, path):
    """Return a function that searches the written file as its own package does."""
    if name == "usearch":
        index = pytest.importorskip("usearch.index").Index.restore(str(path))
        return lambda queries, k: index.search(queries, k).keys
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of SWIG
        index = pytest.importorskip("faiss").read_index(str(path))
    return lambda queries, k: index.search(queries, k)[1]


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("name", ["usearch", "faiss"])
@pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")
def test_the_written_index_finds_what_exact_search_finds(model, tmp_path, name, cosine):
    pytest.importorskip(name)
    path = tmp_path / f"items.{name}"
    found = export(model, path, cosine=cosine, queries=100)
    assert (found.format, found.items, found.dimensions) == (name, 200, 8 + cosine)
    assert found.bytes == path.stat().st_size
    record = json.loads(found.ids_path.read_text())
    assert record["items"] == model.item_ids.tolist()
    assert record["metric"] == ("cos" if cosine else "ip")
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    queries = np.pad(model.user_factors[:50], ((0, 0), (0, int(cosine))))
    positions = np.asarray(restored(name, path)(queries, 10)).astype(int)
    scores = model.user_factors[:50] @ model.item_factors.T
    best = np.argsort(-scores, axis=1, kind="stable")
    # 200 items are fewer than the graphs visit
    assert recall(positions, best, 10) > 0.95
    assert found.check.queries == 100
    assert list(found.check.recall) == [10, 100]
    assert found.check.recall[10] > 0.95
    assert min(found.check.exact.alone, found.check.index.together) > 0


def test_bare_vectors_need_no_package(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    found = export(model, tmp_path / "items.npz")
    with np.load(found.path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["vectors"], model.item_factors)
    assert (found.check.recall, found.check.index) == ({}, None)
    assert export(model, tmp_path / "items.npz", queries=0).check is None


def test_one_more_coordinate_makes_cosines_and_distances_rank_as_products():
    random = np.random.default_rng(0)
    items = (random.normal(size=(60, 5)) * random.exponential(size=(60, 1))).astype(np.float32)
    users = random.normal(size=(20, 5)).astype(np.float32)
    longer = formats.for_cosines(items).astype(np.float64)
    queries = np.pad(users, ((0, 0), (0, 1)))
    lengths = np.linalg.norm(longer, axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-6)
    order = np.argsort(-(users @ items.T), axis=1)
    cosines = queries @ longer.T / lengths
    distances = np.linalg.norm(queries[:, None] - longer[None], axis=2)
    np.testing.assert_array_equal(np.argsort(-cosines, axis=1), order)
    np.testing.assert_array_equal(np.argsort(distances, axis=1), order)


@pytest.mark.parametrize(
    ("exact", "index", "said"),
    [
        (
            0.0003,
            0.0001,
            "Exact search takes 0.30 ms for one user: fast enough, no index",
        ),
        (0.0003, None, "Exact search takes 0.30 ms for one user: fast enough, no index"),
        (0.02, None, "Exact search takes 20 ms for one user; an index may be faster"),
        (0.02, 0.03, "Exact search is faster than the index: do without it"),
        (0.02, 0.001, "the index is 20.0 times as fast, and finds 99.0% of the best 10"),
    ],
)
def test_the_verdict_says_whether_the_index_is_worth_it(exact, index, said):
    found = None if index is None else Speed(index, index)
    recalls = {} if index is None else {10: 0.99}
    assert said in Check(1000, recalls, Speed(exact, exact), found).verdict


def test_recall_is_the_mean_share_of_the_best():
    wanted, found = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[3, 1, 9], [4, 8, 7]])
    assert recall(found, wanted, 3) == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert recall(found, wanted, 1) == 0.5


def test_models_without_factors_are_refused(data, tmp_path):
    ease = EASE().fit(data, show_progress=False)
    with pytest.raises(TypeError, match="EASE has no factors that an index could search; export"):
        export(ease, tmp_path / "items.npz")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    monkeypatch.setitem(sys.modules, "usearch", None)
    with pytest.raises(ImportError, match=r"needs usearch.*pip install 'safecf\[ann\]', or format"):
        export(model, tmp_path / "items.usearch")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"needs faiss.*pip install faiss-cpu"):
        export(model, tmp_path / "items.bin", "faiss")


def test_the_format_is_the_suffix_or_given():
    assert format_of("a/items.USEARCH") == "usearch"
    assert format_of("items.bin", "npz") == "npz"
    with pytest.raises(ValueError, match=r"'items.bin' says no format; end it in .usearch, .faiss"):
        format_of("items.bin")
    with pytest.raises(ValueError, match="unknown format 'usearh': did you mean 'usearch'"):
        format_of("items.bin", "usearh")


def test_bad_arguments(model, tmp_path):
    with pytest.raises(ValueError, match="queries=-1 has to be at least 0"):
        export(model, tmp_path / "items.npz", queries=-1)
    broken = IALS(2, iterations=1).fit(synthetic(30, 20, 200).matrix, show_progress=False)
    broken.item_factors = np.full((20, 2), np.nan, dtype=np.float32)
    with pytest.raises(ValueError, match="item_factors hold NaN or infinity; fit the model again"):
        export(broken, tmp_path / "items.npz")
