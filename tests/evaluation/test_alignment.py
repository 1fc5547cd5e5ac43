"""Models whose items are not those of the split, or in another order."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import EASE, IALS, Interactions, ParameterWarning, evaluate


def fitted(interactions, model=None):
    model = IALS(4, iterations=3, random_state=0) if model is None else model
    return model.fit(interactions, show_progress=False)


@pytest.fixture
def named(split):
    """Return the split with names of users and items."""
    users = np.array([f"user {number}" for number in range(split.user_ids.size)], dtype=object)
    items = np.array([f"item {number}" for number in range(split.item_ids.size)], dtype=object)
    return replace(split, user_ids=users, item_ids=items)


def reordered(split, order):
    """Return the training users with their items in another order."""
    return Interactions.from_csr(
        split.train[:, order], split.training.user_ids, split.item_ids[order]
    )


@pytest.mark.parametrize("model", [IALS(4, iterations=3, random_state=0), EASE()])
def test_the_order_of_the_items_does_not_matter(named, model):
    expected = evaluate(fitted(named.training, model), named)
    order = np.random.default_rng(0).permutation(named.item_ids.size)
    if isinstance(model, IALS):
        # the same model, with its items in another order
        model.item_ids, model.item_factors = named.item_ids[order], model.item_factors[order]
    else:
        fitted(reordered(named, order), model)
    found = evaluate(model, named)
    for metric, scores in expected.scores.items():
        # of the last two users, one has no history, so that all items tie, and one no target
        np.testing.assert_allclose(found.scores[metric][:-2], scores[:-2], rtol=1e-6)
    if expected.losses is not None:
        np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)


def test_models_without_ids_have_the_items_of_the_split(named):
    one, other = (evaluate(fitted(each), named) for each in (named.train, named.training))
    for metric, scores in one.scores.items():
        np.testing.assert_array_equal(other.scores[metric], scores)


def test_items_that_the_split_does_not_have_are_not_ranked(named):
    extra = sp.hstack([sp.csr_matrix(np.ones((30, 3))), named.train], format="csr")
    names = np.append(np.array(["a", "b", "c"], dtype=object), named.item_ids)
    model = fitted(Interactions.from_csr(extra, named.training.user_ids, names))
    evaluation = evaluate(model, named, k=[named.item_ids.size])
    assert evaluation.mean(f"hit@{named.item_ids.size}") == 1


def test_items_that_the_model_does_not_know_are_missed(named):
    known = np.arange(5, named.item_ids.size)
    model = fitted(reordered(named, known))
    with pytest.warns(
        ParameterWarning, match=r"does not know 5 of the split's 40 items, and never"
    ):
        evaluation = evaluate(model, named, k=[40])
    missed = np.asarray((named.test.target[:, :5] > 0).sum(axis=1)).ravel()
    count = evaluation.users.target_count
    expected = (count - missed)[count > 0] / count[count > 0]
    np.testing.assert_allclose(evaluation.scores["recall@40"][count > 0], expected)


def test_other_ids_are_refused(named):
    model = fitted(Interactions.from_csr(named.train, item_ids=np.arange(40) + 7))
    with pytest.raises(ValueError, match=r"none of the split's 40 items: .* as 7, .* 'item 0'; tr"):
        evaluate(model, named)


def test_a_model_that_has_seen_the_test_users(named):
    everybody = sp.vstack([named.train, named.validation.history, named.test.history], "csr")
    model = fitted(Interactions.from_csr(everybody, named.user_ids, named.item_ids))
    with pytest.warns(ParameterWarning, match="trained on 20 of the 20 test users"):
        evaluate(model, named)
    with pytest.warns(ParameterWarning, match="trained on 10 of the 10 validation users"):
        evaluate(model, named, on="validation")


def test_held_out_users_may_be_training_users(named):
    """As in a temporal split."""
    train, test = named.train.shape[0], named.test.target.shape[0]
    ids = np.concatenate([named.user_ids[: train + 10], named.user_ids[:test]])
    model = fitted(named.training)
    found = evaluate(model, replace(named, user_ids=ids))  # a warning would be an error here
    before, after = evaluate(model, named).to_dict(), found.to_dict()
    assert after["users"].pop("ids") == ids[-test:].tolist()
    assert before["users"].pop("ids") == named.user_ids[-test:].tolist()
    assert after.pop("checksum") != before.pop("checksum")
    assert before == after


def test_items_of_the_history_cannot_be_held_out(named):
    same = replace(named.test, target=named.test.history)
    with pytest.raises(ValueError, match=r"entries of test\.target are in test\.history as well"):
        evaluate(fitted(named.training), replace(named, test=same))


def test_no_levels_are_refused(named):
    with pytest.raises(ValueError, match="tails is empty; give at least one level"):
        evaluate(fitted(named.training), named, tails=[])
