"""Warnings of `fit`: users whose factors vanish, and weights that hardly move."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import IALS, SAFER2, ConvergenceWarning

LIKES = sp.random(60, 30, 0.2, "csr", dtype=np.float32, random_state=0)
LIKES.data[:] = 1


def warned(model, data):
    """The text of the warning of a fit, or an empty one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(data, show_progress=False)
    assert len(caught) <= 1
    return str(caught[0].message) if caught else ""


@pytest.mark.parametrize(
    ("ratio", "few", "collapses"),
    [(0.9e-4, 6, True), (1.1e-4, 6, False), (0.9e-4, 5, False)],
)
def test_factors_vanish_below_a_ten_thousandth_of_the_largest(ratio, few, collapses):
    """Of 20 users of one item, x_u is proportional to c_u / (c_u + 1), and more than 5 vanish."""
    small = np.sqrt(ratio) / (2 - np.sqrt(ratio))
    confidence = np.r_[np.full(few, small), np.ones(20 - few)]
    options = {"unobserved_weight": 1.0, "regularization": 1e-3, "random_state": 0}
    text = warned(IALS(1, iterations=3, **options), sp.csr_matrix(confidence[:, None], dtype="f4"))
    if collapses:
        assert text.startswith("training collapses at epoch 2: 30% of the users have vanishing")
        assert "; lower regularization or unobserved_weight or the largest weights" in text
    else:
        assert not text


@pytest.mark.parametrize("kernel", ["gaussian", "uniform"])
def test_weights_that_go_less_than_half_of_their_way_are_reported(kernel):
    """A step is s / (s + 1), where s is the bandwidth over the losses' standard deviation."""

    def gone(bandwidth):
        options = {"bandwidth": bandwidth, "ridge_in_risk": True, "random_state": 0}
        text = warned(SAFER2(4, iterations=1, kernel=kernel, **options), LIKES)
        found = re.search(r"only gone ([\d.]+)% of their way: bandwidth=", text)
        assert bool(found) == bool(text)
        return float(found[1]) / 100 if found else None

    little = 1e-3
    while gone(2 * little) is not None:
        little *= 2
    share = gone(little)
    half = little * (1 - share) / share
    assert gone(0.96 * half) == pytest.approx(0.49, abs=0.003)
    assert gone(1.04 * half) is None


def test_a_thousandth_of_the_loss_has_to_be_learned():
    """With one item and factor, all users have the loss (1 - s)^2 / 2, and 1/2 at zero."""
    likes = sp.csr_matrix(np.ones((8, 1), dtype=np.float32))
    options = {"unobserved_weight": 1e-9, "ridge_exponent": 0, "random_state": 0}
    left = []
    for regularization in np.linspace(2.78, 2.88, 21):
        model = IALS(1, iterations=40, regularization=regularization, **options)
        text = warned(model, likes)
        left.append(float(1 - model.user_factors[0] @ model.item_factors[0]) ** 2)
        assert text.startswith("nothing was learned: the mean loss is") == (left[-1] > 0.999)
    assert [share for share in left if 0.997 < share < 0.999]
    assert [share for share in left if 0.999 < share < 0.9999]


def test_a_bandwidth_that_is_too_small_is_reported_with_a_remedy():
    options = {"iterations": 10, "random_state": 0, "ridge_in_risk": False}
    text = warned(SAFER2(5, bandwidth=1e-4, **options), LIKES)
    assert re.match(r"training collapses at epoch \d+: .*raise bandwidth", text)
    assert not warned(SAFER2(5, bandwidth=0.3, **options), LIKES)
