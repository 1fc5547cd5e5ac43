"""Whatever is asked wrongly is refused in one line with a remedy, and changes nothing."""

import copy
import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from safecf import NotFittedError
from safecf.models import MODELS
from tests.contract.subjects import ALS, BOARD, FACTORS, SOME, build, fitted, learned, only
from tests.helpers import refused, state
from tests.problems import N_DIMENSIONAL
from tests.strategies import bad_options, numpys

BAD = (TypeError, ValueError)


# Options


@given(drawn=st.data())
def test_options_are_in_their_range_or_refused(name, drawn):
    option, value = drawn.draw(bad_options(MODELS[name]))
    model = copy.deepcopy(learned(name))
    setattr(model, option, value)
    with refused(BAD, option, unchanged=model):
        fitted(model, BOARD)


def test_every_option_has_a_rule_and_no_other_is_taken(name):
    for option in MODELS[name]().get_params():
        with refused(BAD, option, "" if option == "device" else "object"):
            fitted(MODELS[name](**{option: object()}), BOARD)
    with pytest.raises(TypeError, match="colour"):
        MODELS[name](colour="red")


def test_the_default_of_the_model_is_advised(name):
    for option, parameter in inspect.signature(MODELS[name]).parameters.items():
        default = parameter.default
        if isinstance(default, float) or option in ("regularization", "unobserved_weight"):
            with refused(ValueError, f"{option}=-1 ", f"; try {option}={default!r}"):
                fitted(build(name, **{option: -1}), BOARD)


def test_near_misses_get_a_hint():
    with refused(ValueError, "unknown backend 'nunpy'", "did you mean 'numpy'"):
        fitted(build("SAFER2", backend="nunpy"), BOARD)


def test_options_and_their_text(name):
    kind, given = MODELS[name], build(name).get_params() | {"num_threads": 7}
    model = kind(**given)
    assert model.get_params() == given
    defaults = kind().get_params()
    shown = [f"{option}={given[option]!r}" for option in given if given[option] != defaults[option]]
    assert repr(model) == f"{name}({', '.join(shown)})"
    assert repr(kind()) == f"{name}()"
    assert repr(kind(num_threads=np.int64(2))) == f"{name}(num_threads=2)"
    generator = np.random.default_rng(0)
    if "random_state" in given:
        assert kind(random_state=generator).get_params()["random_state"] is generator


# Data


def poisoned(value):
    bad = SOME.copy()
    bad.data[3] = value
    return bad


BAD_DATA = {
    "user_items": None,
    "csr_matrix": SOME.toarray(),
    "scipy.sparse.csr_matrix": [[1, 0]],
    "complex": SOME.astype(complex),
    "nan": poisoned(np.nan),
    "inf": poisoned(np.inf),
    "-1": poisoned(-1),
    "no interactions": sp.csr_matrix((3, 4)),
    "0 x 4": sp.csr_matrix((0, 4)),
    "3 x 0": sp.csr_matrix((3, 0)),
}


@pytest.mark.parametrize("word", BAD_DATA)
def test_data_are_refused(make, model, family, word):
    for each in (make(), model):
        with refused(BAD, word, unchanged=each):
            fitted(each, BAD_DATA[word])


@pytest.mark.parametrize(
    "given", [{"show_progress": v} for v in ("no", 0, None)] + [{"callback": 3}], ids=str
)
def test_progress_is_shown_or_not(make, data, family, given):
    model = make()
    with refused(TypeError, *given, unchanged=model):
        model.fit(data, **({"show_progress": False} | given))


def test_options_cannot_change_in_a_callback(make, data, family):
    model = make()
    name, value = next(iter(model.get_params().items()))
    message = f"the callback has set {name}=999 while the model is trained with {name}={value}"
    with refused(RuntimeError, message, "set options before", unchanged=model):
        fitted(model, data, callback=lambda *_: setattr(model, name, np.int64(999)))


# Queries

OUTSIDE = st.integers(max_value=-1) | st.integers(min_value=24)
NO_ID = numpys(OUTSIDE | st.floats() | st.text(min_size=1) | st.booleans()) | st.none()
ASK = {
    "userid": lambda model, bad: model.recommend(bad, SOME[:1], filter_already_liked_items=False),
    "items": lambda model, bad: model.recommend(0, SOME[:1], items=bad),
    "filter_items": lambda model, bad: model.recommend(0, SOME[:1], filter_items=bad),
    "itemid": lambda model, bad: model.similar_items(bad),
    "items ": lambda model, bad: model.similar_items(0, items=bad),
    "filter_items ": lambda model, bad: model.similar_items(0, filter_items=bad),
}
ASK_USERS = {
    "userid ": lambda model, bad: model.similar_users(bad),
    "users": lambda model, bad: model.similar_users(0, users=bad),
    "filter_users": lambda model, bad: model.similar_users(0, filter_users=bad),
}


@given(drawn=st.data())
def test_ids_are_refused(family, drawn):
    asks = ASK | (ASK_USERS if family in FACTORS else {})
    what, bad = drawn.draw(st.sampled_from(sorted(asks))), drawn.draw(NO_ID)
    if bad is None and what.strip() not in ("userid", "itemid"):
        return
    if drawn.draw(st.booleans()):
        bad = drawn.draw(st.sampled_from([[bad], [bad, bad], [[bad]]]))
    model = learned(family)
    with refused((IndexError, ValueError), what.strip(), unchanged=model):
        asks[what](model, bad)


def test_ids_that_are_out_of_range_are_named(model, family):
    for asked, wrong in ((24, 24), ([0, 2**40], 2**40), ([0, -1], -1), (np.array([23, 24]), 24)):
        with refused(IndexError, f"userid {wrong} is out of range: ids go from 0 to 23"):
            model.recommend(asked, None, filter_already_liked_items=False)
    for name in ("items", "filter_items"):
        for wrong in (15, -1):
            with refused(IndexError, f"{name} {wrong} is out of range: ids go from 0 to 14"):
                model.recommend(0, SOME[0], **{name: [0, wrong]})


ARGUMENTS = [
    *(({"N": wrong}, ValueError, f"N={wrong} has to be at least 1") for wrong in (0, -3)),
    ({"N": np.int64(0)}, ValueError, "N=0 has"),
    *(({"N": wrong}, TypeError, f"N={wrong!r} has") for wrong in (2.0, "3", None, True)),
    ({"N": np.float64(2)}, TypeError, "N=2.0 has"),
    ({"items": []}, ValueError, "items is empty"),
    ({"items": [1, 2], "filter_items": np.array([1])}, ValueError, "exclude each other"),
]


@pytest.mark.parametrize(("asked", "error", "words"), ARGUMENTS, ids=str)
def test_requests_are_refused(model, family, asked, error, words):
    with refused(error, words, unchanged=model):
        model.recommend(0, SOME[0], **asked)
    with refused(error, words, unchanged=model):
        model.similar_items(0, **asked)
    if family in FACTORS:
        renamed = {name.replace("items", "users"): value for name, value in asked.items()}
        with refused(error, words.replace("items", "users"), unchanged=model):
            model.similar_users(0, **renamed)


ONE_EACH = "must contain 1 row for every user in userids"
BAD_ROWS = [
    (0, None, "has to be a sparse matrix"),
    (0, SOME.toarray()[:1], "has to be a sparse matrix"),
    (0, [[0, 1]], "has to be a sparse matrix"),
    (0, SOME, ONE_EACH),
    ([0, 1], SOME[0], ONE_EACH),
    (0, SOME[0, :14], "14 columns, while the model knows 15 items"),
    (0, sp.hstack([SOME[0], [[1]]]).tocsr(), "16 columns"),
    (np.arange(24), SOME.T.tocsr(), "transposed"),
    (0, SOME[0, :14], "use the item index of the training data"),
    (0, {"user": [1], "item": [2]}, "try recommend_frame"),
    (0, SOME[0] * np.nan, "nan"),
]
if N_DIMENSIONAL:
    BAD_ROWS.append((0, sp.coo_array(np.ones((1, 15, 2))), "3-D"))


@pytest.mark.parametrize(("users", "rows", "words"), BAD_ROWS, ids=[row[2] for row in BAD_ROWS])
def test_rows_that_do_not_fit_are_refused(model, family, users, rows, words):
    """The same rows for stored and recalculated users, all users, ranks and fold-ins."""
    ones = sp.csr_matrix(np.ones(SOME.shape))
    asks = [
        lambda: model.recommend(users, rows),
        lambda: model.recommend(users, rows, recalculate_user=True),
    ]
    if words != ONE_EACH:
        asks += [lambda: model.recommend_all(rows), lambda: model.ranks(rows, ones)]
        asks += [lambda: model.fold_in(rows)] if family in FACTORS else []
    if family in FACTORS:
        asks += [lambda: model.recalculate_user(users, rows)]
    for ask in asks:
        with refused(ValueError, "user_items", words, unchanged=model):
            ask()


def test_all_users_and_ranks_have_their_rows(model, family):
    with refused(IndexError, "userid 24 is out of range"):
        model.recommend_all(SOME, users_items_offset=1)
    with refused(ValueError, "must contain 1 row for every user"):
        model.ranks(SOME, SOME[:3])
    with refused(IndexError, "99", "0 to 14"):
        model.rank_items(0, SOME[0], [1, 99])
    with refused(ValueError, "items is empty"):
        model.rank_items(0, SOME[0], [])


AUDIENCES = [
    (0, None, "item_users has to be a sparse matrix"),
    (0, SOME.T.tocsr(), "must contain 1 row for every item in itemids"),
    (0, SOME[0], "15 columns, while the model knows 24 users"),
]


@pytest.mark.parametrize(("item", "rows", "words"), AUDIENCES, ids=[row[2] for row in AUDIENCES])
def test_audiences_that_do_not_fit_are_refused(item, rows, words):
    model = learned("SAFER2")
    for ask in (
        lambda: model.recalculate_item(item, rows),
        lambda: model.similar_items(item, recalculate_item=True, item_users=rows),
    ):
        with refused(ValueError, words, unchanged=model):
            ask()


# Partial fits

PARTIAL = [
    ([0, -1], slice(2), IndexError, "-1"),
    ([3, 1, 3], slice(3), ValueError, "3 more than once"),
    ([0, 1], slice(1), ValueError, "1 row for every"),
    ([0.5], slice(1), IndexError, "not integers"),
    ([12_345], slice(1), ValueError, "ids go up to 12,345, ", "not original ids, and new"),
]


@pytest.mark.parametrize("case", PARTIAL, ids=str)
@only(FACTORS)
def test_partial_fits_leave_no_trace(model, family, case):
    ids, rows, error, *words = case
    with refused(error, *words, unchanged=model):
        model.partial_fit_users(ids, SOME[rows])
    if family in ALS:
        with refused(error, *words, unchanged=model):
            model.partial_fit_items(ids, SOME.T.tocsr()[rows])


@only(FACTORS)
def test_rows_of_partial_fits_leave_no_trace(model, family):
    sides = [(model.partial_fit_users, SOME), (model.partial_fit_items, SOME.T.tocsr())]
    for fit, rows in sides if family in ALS else sides[:1]:
        for bad, words in (
            (rows[:1, :3], "columns"),
            (rows[:1].toarray(), "sparse"),
            (rows[:1] * np.nan, "nan"),
        ):
            with refused(ValueError, words, unchanged=model):
                fit([0], bad)


# A model that is not fitted, or whose arrays the caller has replaced


def test_before_fit(make, data, family):
    model, audience = make(), data.T.tocsr()
    asks = [
        lambda: model.recommend(0, data[0]),
        lambda: model.recommend_all(data),
        lambda: model.rank_items(0, data[0], [1]),
        lambda: model.ranks(data, data),
        lambda: model.similar_items(0),
        lambda: model.similar_users(0),
        lambda: model.explain(3, data, 1),
        model.recommend_frame,
        lambda: model.save("nowhere"),
    ]
    if family in FACTORS:
        asks += [
            lambda: model.fold_in(data),
            lambda: model.recalculate_user(0, data[0]),
            lambda: model.recalculate_item(0, audience[0]),
            lambda: model.partial_fit_users([0], data[0]),
            lambda: model.partial_fit_items([0], audience[0]),
        ]
        assert (model.user_factors, model.item_factors, model.history) == (None, None, [])
    for ask in asks:
        with refused(NotFittedError, "is not fitted; call fit first", unchanged=model):
            ask()


OTHER_KINDS = {
    "doubles": lambda factors: factors.astype(np.float64),
    "integers": lambda factors: factors.astype(np.int32),
    "one row": lambda factors: factors[0],
    "a list": lambda factors: factors.tolist(),
    "no columns": lambda factors: factors[:, :0],
    "objects": lambda factors: factors.astype(object),
}


def questions(model, data):
    return [
        lambda: model.recommend(0, data[0]),
        lambda: model.fold_in(data),
        lambda: model.similar_items(0),
        lambda: model.similar_users(0),
        lambda: model.partial_fit_users([0], data[0]),
    ]


@pytest.mark.parametrize("case", OTHER_KINDS)
@only(FACTORS)
def test_factors_of_another_kind_are_refused(model, family, data, case):
    for name in ("user_factors", "item_factors"):
        before = getattr(model, name)
        setattr(model, name, OTHER_KINDS[case](before))
        for ask in questions(model, data):
            with refused(ValueError, f"{name} is ", "assign a matrix of float32", unchanged=model):
                ask()
        setattr(model, name, before)


@only(FACTORS)
def test_factors_that_do_not_fit_each_other_are_refused(model, family, data):
    model.item_factors = np.ones((15, 7), dtype=np.float32)
    for ask in questions(model, data):
        with refused(ValueError, "user_factors has 4 columns, and item_factors 7"):
            ask()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@only(FACTORS)
def test_users_whose_factors_are_no_numbers_are_named(model, family, data, value):
    model.user_factors = model.user_factors.copy()
    model.user_factors[3, 1] = value
    with refused(ValueError, "user_factors hold NaN or infinity for user 3; fit again"):
        model.recommend([2, 3], data[[2, 3]])
    assert (model.recommend(2, data[2])[0] >= 0).any()
    assert (model.recommend(3, data[3], recalculate_user=True)[0] >= 0).any()


def test_items_need_a_weight_for_every_user(data):
    model = copy.deepcopy(learned("SAFER2"))
    model.user_factors = np.ones((30, 4), dtype=np.float32)
    audience = data.T.tocsr()[:1]
    audience.resize(1, 30)
    with refused(ValueError, "user_factors has 30 rows, and user_weights 24"):
        model.recalculate_item([0], audience)


def test_item_weights_of_another_shape_are_refused(data):
    model = copy.deepcopy(learned("EASE"))
    for shape in ((3, 3), (15, 14)):
        model.item_weights = np.ones(shape, dtype=np.float32)
        with refused(ValueError, f"item_weights has shape {shape}, ", "knows 15 items"):
            model.recommend(0, data[0])
    model.item_weights = np.ones((15, 15))
    with refused(ValueError, "item_weights is float64[15, 15]; assign"):
        model.similar_items(0)


def test_what_a_model_cannot_do_is_said(family):
    model, before = learned(family), state(learned(family))
    lacking = {
        "EASE": {"stores nothing of the users": lambda: model.similar_users(0)},
        "MultVAE": {"no sums over": lambda: model.explain(3, SOME, 1)},
    }
    for words, ask in lacking.get(family, {}).items():
        with refused(NotImplementedError, words, unchanged=model):
            ask()
    if family != "SAFER2":
        with refused(NotImplementedError, f"{family} cannot compute an item from its users"):
            model.similar_items(0, recalculate_item=True, item_users=SOME.T.tocsr()[:1])
    assert state(model) == before
