"""A model's life: trained on, asked, stored, copied, in any order and from several threads."""

import copy
import io
import pickle
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import safecf
from safecf.models import MODELS, Recommender
from tests.contract.subjects import ALS, FACTORS, SOME, build, fitted, learned, only
from tests.helpers import refused, same, state
from tests.reference import cosines

AUDIENCE = SOME.T.tocsr()


def reloaded(model):
    file = io.BytesIO()
    model.save(file)
    return safecf.load(io.BytesIO(file.getvalue()))


def repickled(model):
    return pickle.loads(pickle.dumps(model))


class Life(RuleBasedStateMachine):
    """Any sequence of changes and copies, with a brute-force check of the answers after each."""

    family = "SAFER2"

    def __init__(self):
        super().__init__()
        self.model = copy.deepcopy(learned(self.family))
        self.left = []  # copies, and what they were when the model went on

    @rule(user=st.integers(0, 30), row=st.integers(0, 23))
    def user_comes(self, user, row):
        before = self.model.user_factors.copy()
        self.model.partial_fit_users([user], SOME[[row]])
        now = self.model.user_factors
        np.testing.assert_array_equal(now[user], self.model.fold_in(self.padded([row]))[0])
        others = np.delete(np.arange(len(before)), user) if user < len(before) else ...
        np.testing.assert_array_equal(now[: len(before)][others], before[others])

    @rule(item=st.integers(0, 20), column=st.integers(0, 14))
    def item_comes(self, item, column):
        if self.family in ALS:
            audience = AUDIENCE[[column]]
            audience.resize(1, len(self.model.user_factors))
            expected = self.model.recalculate_item(item, audience)
            self.model.partial_fit_items([item], audience)
            np.testing.assert_array_equal(self.model.item_factors[item], expected)

    @rule()
    def nobody_comes(self):
        before = state(self.model)
        self.model.partial_fit_users([], SOME[:0])
        if self.family in ALS:
            self.model.partial_fit_items([], AUDIENCE[:0])
        assert state(self.model) == before

    @rule(how=st.sampled_from([copy.copy, copy.deepcopy, reloaded, repickled]))
    def moves(self, how):
        moved = how(self.model)
        same(moved, self.model)
        self.left = [*self.left[-2:], (self.model, state(self.model))]
        self.model = moved

    @rule(scale=st.sampled_from([0.5, 2.0]))
    def factors_are_replaced(self, scale):
        """Those of the users follow, so that the scores are those of the model's own solves."""
        self.model.item_factors = self.model.item_factors * np.float32(scale)

    @rule(item=st.integers(0, 14))
    def is_asked(self, item):
        ids, scores = self.model.similar_items(item, N=3)
        factors = self.model.item_factors
        if factors[item].any():
            expected = np.sort(cosines(factors, factors[item]))[::-1]
            np.testing.assert_allclose(scores[1:], expected[1:3], atol=1e-5)
            assert ids[0] == item

    def padded(self, rows):
        found = SOME[rows].copy()
        found.resize(len(rows), len(self.model.item_factors))
        return found

    @invariant()
    def answers_are_those_of_the_factors(self):
        users = np.flatnonzero(self.model.user_factors[:24].any(axis=1))
        history = self.padded(users)
        ids, scores = self.model.recommend(users, history, N=4)
        table = self.model.user_factors[users] @ self.model.item_factors.T
        table[history.nonzero()] = -np.inf
        best = -np.sort(-table, axis=1)[:, :4]
        np.testing.assert_allclose(scores, best, rtol=1e-4, atol=1e-5)
        assert not history.toarray()[np.arange(len(users))[:, None], ids].any()

    @invariant()
    def copies_stay_as_they_were(self):
        for each, was in self.left:
            assert state(each) == was


class LifeOfANetwork(Life):
    family = "MultVAE"


TestLife, TestLifeOfANetwork = Life.TestCase, LifeOfANetwork.TestCase
LIVES = settings.default.max_examples
TestLife.settings = settings(max_examples=LIVES // 7, stateful_step_count=12)
TestLifeOfANetwork.settings = settings(max_examples=LIVES // 20, stateful_step_count=12)


# Files and copies


def check_same(model, other):
    assert type(other) is type(model)
    assert repr(other) == repr(model)
    same(other, model)
    answers = [
        (*each.recommend([0, 1], SOME[:2]), *each.similar_items([0, 1])) for each in (model, other)
    ]
    for one, two in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, two)
    if type(model).__name__ in FACTORS:
        np.testing.assert_array_equal(other.fold_in(SOME[:2]), model.fold_in(SOME[:2]))
    if type(model).__name__ in ALS:
        found = other.recalculate_item([0, 1], AUDIENCE[:2])
        np.testing.assert_array_equal(found, model.recalculate_item([0, 1], AUDIENCE[:2]))


@pytest.mark.parametrize("given", ["model", "model.safetensors"])
def test_save_and_load(model, name, tmp_path, given):
    model.save(str(tmp_path / given))
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    for load in (type(model).load, Recommender.load, safecf.load):
        other = load(tmp_path / given)
        check_same(model, other)
    fitted(other, SOME[:9]).save(tmp_path / given)
    assert safecf.load(tmp_path / given).shape == (9, 15)


def test_file_objects(model, family, tmp_path):
    buffer = io.BytesIO()
    model.save(buffer)
    with open(tmp_path / "plain", "wb") as file:
        model.save(file)
    assert (tmp_path / "plain").read_bytes() == buffer.getvalue()


@only(FACTORS)
def test_files_hold_what_partial_fits_have_added(model, family):
    other = reloaded(model)
    assert other.user_factors.flags.writeable
    other.partial_fit_users([0, 40], SOME[[1, 2]])
    check_same(other, reloaded(other))


UNUSUAL = {
    "regularization": np.float32(2**-10),
    "unobserved_weight": 1,
    "init_std": 0.25,
    "bandwidth": np.inf,
    "kernel": "logistic",
    "quantile_sample": 0.5,
    "beta": np.float32(0.25),
    "anneal_share": 1,
    "dropout": 0,
}


def test_every_option_is_saved(name):
    known = build(name).get_params()
    options = {option: value for option, value in UNUSUAL.items() if option in known}
    assert options
    model = fitted(build(name, **options), SOME)
    assert reloaded(model).get_params() == model.get_params()


@only(FACTORS)
def test_a_generator_is_saved_as_the_seed_it_gave(make, family):
    model = fitted(make(random_state=np.random.default_rng(1)), SOME)
    other = reloaded(model)
    assert other.random_state == model.seed
    fitted(other, SOME)
    np.testing.assert_array_equal(other.item_factors, model.item_factors)


def test_what_load_would_refuse_is_not_saved(model, family, tmp_path):
    mine = copy.copy(model)
    mine.__class__ = type("Mine", (type(model),), {})
    with refused(TypeError, "Mine is no model of safecf", f"; save a {family}, or pickle it"):
        mine.save(tmp_path / "model")
    model.item_popularity = np.full(15, np.nan, dtype=np.float32)
    with refused(ValueError, "item_popularity holds a share that is negative or not"):
        model.save(tmp_path / "model")
    assert not [*tmp_path.iterdir()]


def test_another_class_is_refused(model, name, tmp_path):
    model.save(tmp_path / "model")
    for other in MODELS.values():
        if not issubclass(MODELS[name], other):
            with refused(safecf.FileFormatError, f"it holds a {name}, not a {other.__name__}"):
                other.load(tmp_path / "model")


@pytest.mark.parametrize("protocol", [2, 4, 5])
@only(FACTORS)
def test_an_unpickled_model_can_be_changed_after_a_search(model, family, protocol):
    """Its arrays can only be read, in some protocols."""
    other = pickle.loads(pickle.dumps(model, protocol))
    other.recommend(0, SOME[0])
    other.similar_users(0)
    other.partial_fit_users([0], SOME[[1]])
    np.testing.assert_array_equal(other.user_factors[0], model.user_factors[1])
    if family in ALS:
        other.partial_fit_items([0], AUDIENCE[[1]])
        expected = model.recalculate_item(0, AUDIENCE[[1]])
        assert np.abs(other.item_factors[0] - expected).max() < 0.1
    fitted(other, SOME)


@pytest.mark.parametrize("duplicate", [repickled, copy.deepcopy])
def test_copies_share_nothing(make, model, name, duplicate):
    model.similar_items(0)
    model.recommend(0, SOME[0], recalculate_user=True)
    other, before = duplicate(model), state(model)
    check_same(model, other)
    if name in FACTORS:
        other.partial_fit_users([0], SOME[5])
    fitted(other, SOME[:9])
    assert state(model) == before
    assert repr(duplicate(make())) == repr(make())


# One fit at a time


def check_as_if_alone(model, alone):
    ours, theirs = (
        {**state(each), "history": getattr(each, "history", 0)} for each in (model, alone)
    )
    assert ours == theirs


@only(ALS)
def test_a_callback_cannot_change_the_training(make, family):
    def meddle(epoch, seconds, objective):
        with pytest.raises(ValueError, match="read-only"):
            model.item_factors[:] = 0

    model = make()
    fitted(model, SOME, callback=meddle)
    check_as_if_alone(model, fitted(make(), SOME))


def test_a_callback_cannot_fit_the_same_model(make, family):
    asked = []

    def meddle(epoch, seconds, objective):
        with refused(RuntimeError, "fit was called while a fit of the same", "copy.deepcopy"):
            fitted(model, SOME[:9])
        if family in FACTORS:
            with refused(RuntimeError, "a partial fit was called while a fit"):
                model.partial_fit_users([0], SOME[[1]])
        if family in ALS:
            with refused(RuntimeError, "a partial fit was called while a fit"):
                model.partial_fit_items([0], AUDIENCE[[1]])
        fitted(copy.deepcopy(model), SOME[:9])
        asked.append(epoch)

    model = make()
    fitted(model, SOME, callback=meddle)
    assert asked
    check_as_if_alone(model, fitted(make(), SOME))
    fitted(model, SOME)  # and afterwards it may be


def test_a_second_thread_cannot_fit_the_same_model(make, family):
    problems = []

    def fit_too():
        try:
            fitted(model, SOME[:9])
        except RuntimeError as problem:
            problems.append(str(problem))

    def meanwhile(epoch, seconds, objective):
        thread = threading.Thread(target=fit_too)
        thread.start()
        thread.join()

    model = make()
    fitted(model, SOME, callback=meanwhile)
    assert problems
    assert all("in another thread" in problem for problem in problems)
    check_as_if_alone(model, fitted(make(), SOME))


def test_a_fit_that_fails_can_be_repeated(make, family):
    def fail(epoch, seconds, objective):
        raise ZeroDivisionError("on purpose")

    model = make()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        fitted(model, SOME, callback=fail)
    assert not model.is_fitted
    check_as_if_alone(fitted(model, SOME), fitted(make(), SOME))


@only(FACTORS)
def test_partial_fits_from_many_threads_are_all_kept(make, family):
    model = fitted(make(), SOME)
    expected = model.fold_in(SOME)
    threads = [
        threading.Thread(target=model.partial_fit_users, args=([24 + row], SOME[[row]]))
        for row in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(model.user_factors[24:], expected)
