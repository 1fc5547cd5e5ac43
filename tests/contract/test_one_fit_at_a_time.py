"""One fit at a time: what callbacks, copies and other threads can do to a model, and cannot."""

import copy
import threading

import numpy as np
import pytest

from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import assert_equal, assert_same, fitted, only


@only(ALSModel)
def test_a_callback_cannot_change_the_training(make, data):
    def meddle(epoch, seconds, objective):
        with pytest.raises(ValueError, match="read-only"):
            model.item_factors[:] = 0

    model, alone = make(), fitted(make(), data)
    model.fit(data, show_progress=False, callback=meddle)
    np.testing.assert_array_equal(model.item_factors, alone.item_factors)
    np.testing.assert_array_equal(model.user_factors, alone.user_factors)
    np.testing.assert_array_equal(model.user_weights, alone.user_weights)
    assert model.history == alone.history


@only(MatrixFactorization)
def test_partial_fits_of_a_copy_change_nothing_else(make, data, snapshot):
    model = fitted(make(), data)
    for search in (False, True):
        if search:
            model.similar_items(0)
            model.similar_users(0)
        held, other = snapshot(model), copy.copy(model)
        other.partial_fit_users([0, 30], data[[1, 2]])
        if isinstance(model, ALSModel):
            other.partial_fit_items([0, 17], data.T.tocsr()[[1, 2]])
            assert not np.array_equal(other.item_factors[0], model.item_factors[0])
        assert not np.array_equal(other.user_factors[0], model.user_factors[0])
        assert snapshot(model) == held


def test_a_callback_cannot_fit_the_same_model(make, data):
    refused = []

    def meddle(epoch, seconds, objective):
        with pytest.raises(RuntimeError, match=r"fit was called while a fit .* copy\.deepcopy"):
            model.fit(data[:9], show_progress=False)
        if isinstance(model, MatrixFactorization):
            with pytest.raises(RuntimeError, match="a partial fit was called while a fit"):
                model.partial_fit_users([0], data[[1]])
        if isinstance(model, ALSModel):
            with pytest.raises(RuntimeError, match="a partial fit was called while a fit"):
                model.partial_fit_items([0], data.T.tocsr()[[1]])
        copy.deepcopy(model).fit(data[:9], show_progress=False)
        refused.append(epoch)

    model, alone = make(), fitted(make(), data)
    model.fit(data, show_progress=False, callback=meddle)
    assert refused
    assert_same(model, alone)
    fitted(model, data)  # and afterwards it may be


def test_a_second_thread_cannot_fit_the_same_model(make, data):
    model, alone, problems = make(), fitted(make(), data), []

    def fit_too():
        try:
            model.fit(data[:9], show_progress=False)
        except RuntimeError as problem:
            problems.append(str(problem))

    def meanwhile(epoch, seconds, objective):
        thread = threading.Thread(target=fit_too)
        thread.start()
        thread.join()

    model.fit(data, show_progress=False, callback=meanwhile)
    assert problems
    assert all("in another thread" in problem for problem in problems)
    assert_same(model, alone)


def test_a_fit_that_fails_can_be_repeated(make, data):
    def fail(epoch, seconds, objective):
        raise ZeroDivisionError("on purpose")

    model = make()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        model.fit(data, show_progress=False, callback=fail)
    assert_same(fitted(model, data), fitted(make(), data))


@only(MatrixFactorization)
def test_partial_fits_from_many_threads_are_all_kept(make, data):
    model = fitted(make(), data)
    expected = model.fold_in(data)
    threads = [
        threading.Thread(target=model.partial_fit_users, args=([24 + row], data[[row]]))
        for row in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_equal(model, model.user_factors[24:], expected)
