"""Synthetic interactions have the exact counts and the distributions of the recipe."""

import dataclasses

import numpy as np
import pytest

from safecf.data.datasets.synthetic import SHAPES, Recipe, synthetic


@pytest.fixture(scope="module")
def demo():
    return synthetic("demo")


def counts(matrix):
    return np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=matrix.shape[1])


@pytest.mark.parametrize(
    ("users", "items", "interactions"),
    [(1, 10, 5), (50, 10, 250), (30, 40, 600), (300, 90, 9_001), (2_000, 500, 60_000)],
)
def test_the_counts_are_exact(users, items, interactions):
    found = synthetic(users, items, interactions, tastes=3, seed=1)
    matrix = found.matrix
    assert matrix.shape == (users, items)
    assert matrix.nnz == interactions
    assert matrix.indices.dtype == np.int32
    assert (matrix.data == 1).all()
    lengths, _ = counts(matrix)
    assert lengths.min() >= 5
    assert lengths.max() <= items // 2
    assert found.group.shape == (users,)
    assert found.recipe == Recipe(users, items, interactions, tastes=3, seed=1)
    fresh = matrix.copy()
    fresh.sum_duplicates()
    assert fresh.nnz == interactions


def test_a_seed_gives_the_same_interactions(demo):
    again, other = synthetic("demo", seed=0), synthetic("demo", seed=1)
    np.testing.assert_array_equal(demo.matrix.indices, again.matrix.indices)
    np.testing.assert_array_equal(demo.matrix.indptr, again.matrix.indptr)
    np.testing.assert_array_equal(demo.group, again.group)
    assert not np.array_equal(demo.matrix.indices, other.matrix.indices)


def test_the_distribution_does_not_depend_on_the_block_size(demo, monkeypatch):
    monkeypatch.setattr("safecf.data.datasets.synthetic.BLOCK", 10_000)
    blocks = synthetic("demo")
    np.testing.assert_array_equal(blocks.matrix.indptr, demo.matrix.indptr)
    popularity, expected = counts(blocks.matrix)[1], counts(demo.matrix)[1]
    assert np.corrcoef(popularity, expected)[0, 1] > 0.98


def test_activity_is_log_normal():
    lengths, _ = counts(synthetic(20_000, 5_000, 1_000_000, shortest=1, spread=0.8).matrix)
    logarithms = np.log(lengths)
    assert logarithms.std() == pytest.approx(0.8, rel=0.05)
    # quantiles of N(mean, spread^2)
    quantiles = np.quantile(logarithms, [0.1587, 0.5, 0.8413])
    assert np.diff(quantiles) == pytest.approx([0.8, 0.8], rel=0.05)
    assert np.median(lengths) == pytest.approx(50 * np.exp(-(0.8**2) / 2), rel=0.05)


@pytest.mark.parametrize(("exponent", "shift"), [(1.0, 0.01), (2.0, 0.08)])
def test_popularity_is_zipf_mandelbrot(exponent, shift):
    """One taste with one facet, and histories so short that few draws repeat an item."""
    found = synthetic(
        40_000, 2_000, 400_000, tastes=1, facets=1, spread=0, exponent=exponent, shift=shift
    )
    ranked = np.sort(counts(found.matrix)[1])[::-1]
    place = np.arange(1, 2_001) + shift * 2_000
    tenth = slice(50, 1_000)
    slope = np.polyfit(np.log(place[tenth]), np.log(ranked[tenth]), 1)[0]
    assert slope == pytest.approx(-exponent, rel=0.1)


def test_the_demo_is_long_tailed_on_both_sides(demo):
    """As MovieLens-1M is: its best-seller has 17 times the mean, a quarter of its users 60 %."""
    lengths, popularity = counts(demo.matrix)
    assert popularity.max() > 6 * popularity.mean()
    assert np.median(popularity) < 0.5 * popularity.mean()
    most_active = np.sort(lengths)[-lengths.size // 4 :]
    assert 0.5 < most_active.sum() / lengths.sum() < 0.75
    assert np.median(lengths) < 0.7 * lengths.mean()
    assert popularity.min() > 0


def test_the_order_of_items_and_users_is_random(demo):
    lengths, popularity = counts(demo.matrix)
    for values in (lengths, popularity, demo.group):
        assert abs(np.corrcoef(np.arange(values.size), values)[0, 1]) < 0.08


def test_tastes_have_their_shares_and_their_own_items(demo):
    shares = np.bincount(demo.group, minlength=40) / demo.group.size
    np.testing.assert_allclose(shares, demo.recipe.shares, atol=0.015)
    assert demo.recipe.shares[0] > 20 * demo.recipe.shares[-1]
    profile = np.array([demo.matrix[demo.group == g].mean(axis=0).A1 for g in range(40)])
    profile /= np.linalg.norm(profile, axis=1, keepdims=True)
    likeness = (profile @ profile.T)[np.triu_indices(40, 1)]
    # tastes share the hits only
    assert likeness.min() > 0.02
    assert likeness.mean() < 0.5


def test_hits_are_for_all_tastes_and_users_who_exhaust_theirs_get_other_items():
    found = synthetic(4_000, 300, 100_000, tastes=2, hits=1.0, roaming=0.0)
    small, large = (found.matrix[found.group == g].mean(axis=0).A1 for g in (1, 0))
    assert np.corrcoef(small, large)[0, 1] > 0.98
    found = synthetic(40, 40, 800, tastes=4, facets=5, hits=0.0, roaming=0.0, overlap=0.0)
    np.testing.assert_array_equal(counts(found.matrix)[0], 20)


def test_the_shapes_are_those_of_the_paper_s_data():
    sizes = {name: (s.users, s.items, s.interactions) for name, s in SHAPES.items()}
    assert sizes["ml-20m-like"] == (136_677, 20_108, 9_540_000)
    assert sizes["msd-like"] == (571_355, 41_140, 33_600_000)
    assert 3_000 <= sizes["demo"][0] <= 6_000


def test_a_shape_takes_options():
    found = synthetic("demo", interactions=100_000, tastes=5, seed=3)
    assert found.recipe == dataclasses.replace(
        SHAPES["demo"], interactions=100_000, tastes=5, seed=3
    )
    assert found.matrix.nnz == 100_000
    assert set(found.group) == set(range(5))


BAD = [
    (("demos",), {}, "unknown shape 'demos': did you mean 'demo'"),
    (("demo",), {"taste": 4}, "unknown option 'taste': did you mean 'tastes'"),
    ((0, 10, 50), {}, "users=0; it has to be a whole number >= 1"),
    ((10.5, 10, 50), {}, "users=10.5; it has to be a whole number"),
    ((10, 20, 49), {}, "49, but 10 users with 5 to 10 of the 20 items ", " 50 to 100; change"),
    ((10, 20, 101), {}, "interactions=101, but 10 users"),
    ((10, 20, 60), {"hits": 1.5}, "hits=1.5; it has to be between 0 and 1"),
    ((10, 20, 60), {"hits": 0.7, "roaming": 0.4}, "roaming=0.4; it has to be at most 1 - h"),
    ((10, 20, 60), {"seed": -1}, "seed=-1 has to be at least 0; try seed=0"),
    ((10, 20, 60), {"shift": 0}, "shift=0; it has to be above 0"),
    ((10, 20, 60), {"spread": float("nan")}, "spread=nan; it has to be at least 0"),
    *(((10, 20, 60), {"seed": seed}, f"seed={seed} has to be a whole number; try")
      for seed in (1.5, None)),
    ((10, 20, 60), {"hits": "much"}, "hits='much' has to be a number; try"),
    ((5,), {}, "synthetic(5) needs items and interactions ", " demo, ml"),
    ((1, 1, 1), {}, "items=1: ", " at least 5; give 10 items or more, or"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_recipes_are_refused(case):
    arguments, options, *words = BAD[case]
    with pytest.raises((TypeError, ValueError)) as told:
        synthetic(*arguments, **options)
    assert all(word in str(told.value) for word in words)
