"""The engine: answers are the library's, bit for bit, whatever else is in the batch."""

import numpy as np
import pytest
import scipy.sparse

from safecf import EASE, SAFER2, Interactions, MultVAE, ParameterWarning
from safecf.serving.engine import Engine
from safecf.serving.requests import Explain, Explained, Recommend, Similar, UnknownIdError
from tests.helpers import refused
from tests.serving.conftest import ITEMS, fit, fit_on, named

MODELS = {
    "SAFER2": lambda: fit(SAFER2),
    "EASE": lambda: EASE(50.0).fit(named(), show_progress=False),
    "MultVAE": lambda: fit(MultVAE, factors=8, device="cpu"),
}


@pytest.fixture(scope="module", params=MODELS)
def engine(request):
    if request.param == "MultVAE":
        pytest.importorskip("torch")
    return Engine(MODELS[request.param]())


def row(history, weights=None):
    """Return a history of item numbers as a matrix."""
    values = np.ones(len(history)) if weights is None else np.array(weights)
    entries = values.astype(np.float32), (np.zeros(len(history), dtype=int), history)
    return scipy.sparse.csr_matrix(entries, shape=(1, ITEMS))


def names(numbers):
    return tuple(f"item {each}" for each in numbers)


def expected(model, history, k, weights=None, **options):
    ids, scores = model.recommend(0, row(history, weights), N=k, recalculate_user=True, **options)
    there = ids >= 0
    return list(names(ids[there])), scores[there].tolist()


def draw(rng):
    """Draw a request, and what the library is asked for it."""
    history = rng.choice(ITEMS, rng.integers(0, 20), replace=False)
    k, weights, options = int(rng.integers(1, 40)), None, {}
    request = {"history": names(history), "k": k}
    if rng.random() < 0.5:
        weights = rng.uniform(0.1, 5, history.size).tolist()
        request["weights"] = tuple(weights)
    if rng.random() < 0.3:
        options["filter_items"] = rng.choice(ITEMS, 7, replace=False)
        request["exclude"] = names(options["filter_items"])
    elif rng.random() < 0.3:
        options["items"] = rng.choice(ITEMS, 9, replace=False)
        request["items"] = names(options["items"])
    if rng.random() < 0.3:
        options["filter_already_liked_items"] = False
        request["keep_history"] = True
    return Recommend(**request), (history, k, weights), options


@pytest.mark.parametrize("size", [1, 2, 7, 33])
def test_answers_are_those_of_the_library_whatever_the_batch(engine, rng, size):
    for _ in range(10):
        drawn = [draw(rng) for _ in range(size)]
        answers = engine.answer([request for request, _, _ in drawn])
        assert len(answers) == size
        for answer, (_, asked, options) in zip(answers, drawn, strict=True):
            wanted = expected(engine.model, *asked, **options)
            assert (answer.ids, answer.scores) == wanted


def test_known_users_get_their_stored_recommendations(model):
    engine = Engine(model)
    users = [3, 50, 7]
    ids, scores = model.recommend(np.array(users), None, N=5, filter_already_liked_items=False)
    answers = engine.answer([Recommend(user=f"user {user}", k=5) for user in users])
    assert [answer.ids for answer in answers] == [list(names(row)) for row in ids]
    assert [answer.scores for answer in answers] == scores.tolist()
    (unknown,) = engine.answer([Recommend(user="user 0", k=ITEMS)])  # has nothing in training
    assert [each.popular for each in (*answers, unknown)] == [False] * 3 + [True]
    assert len(unknown.ids) == ITEMS  # without the data, nothing is removed
    assert not any(each.history_removed for each in (*answers, unknown))


def test_nothing_is_known_of_a_user_without_history_or_with_unseen_items(engine):
    popular = engine.model.popularity()
    requests = [Recommend(history=()), Recommend(history=("new",))]
    if engine.name != "MultVAE":  # whose encoder knows all items
        requests.append(Recommend(history=("item 0",)))
    best = np.argsort(-popular, kind="stable")[:10]
    for answer in engine.answer(requests):
        assert answer.popular
        assert answer.ids == list(names(best))
        assert answer.scores == popular[best].tolist()
    (known,) = engine.answer([Recommend(history=("item 5", "item 6"))])
    assert not known.popular


def test_unknown_items_are_left_out_and_others_count_once_with_the_sum_of_their_weights(model):
    mixed, twice, once, added, sums, nothing = Engine(model).answer(
        [
            Recommend(history=("item 5", "x", "y", "x")),
            Recommend(history=("item 5", "item 5")),
            Recommend(history=("item 5",)),
            Recommend(history=("item 5", "item 6", "item 5"), weights=(1.0, 1.0, 2.0)),
            Recommend(history=("item 5", "item 6"), weights=(3.0, 1.0)),
            Recommend(history=("item 5",), items=("item 7",), exclude=("item 7",)),
        ]
    )
    assert mixed.unknown == ("x", "y")
    assert (mixed.ids, mixed.scores) == (once.ids, once.scores)
    assert twice == once
    assert added == sums
    assert nothing.ids == []


def test_scores_that_look_like_popularity_are_not_flagged(model):
    """Nobody has item 0: its score and its share of users are 0."""
    for history, popular in ((("item 1", "item 2"), False), ((), True)):
        (found,) = Engine(model).answer([Recommend(history=history, items=("item 0",), k=1)])
        assert (found.ids, found.scores, found.popular) == (["item 0"], [0.0], popular)


def test_similar_items_are_those_of_the_library_without_the_item(engine):
    ids, scores = engine.model.similar_items(5, N=8)
    (answer,) = engine.answer([Similar("item 5", k=7)])
    there = ids[1:] >= 0
    assert answer.ids == list(names(ids[1:][there]))
    assert answer.scores == scores[1:][there].tolist()
    assert "item 5" not in answer.ids


class Explaining:
    """Stands for a model whose scores are sums of known parts."""

    def __init__(self, model):
        self.model = model
        self.asked = None

    def __getattr__(self, name):
        return getattr(self.model, name)

    def explain(self, userid, user_items, itemid, user_weights=None, N=10):
        self.asked = userid, user_items.toarray(), itemid
        parts = [(int(item), float(item) / 2) for item in user_items.indices[::-1]][:N]
        return sum(part for _, part in parts), parts, None


def test_explanations_are_those_of_the_model(model):
    explaining = Explaining(model)
    (answer,) = Engine(explaining).answer(
        [Explain("item 9", None, ("item 5", "zzz", "item 6"), weights=(2.0, 1.0, 1.0), k=2)]
    )
    assert answer == Explained("item 9", 5.5, ["item 6", "item 5"], [3.0, 2.5], ("zzz",))
    userid, matrix, item = explaining.asked
    assert (userid, item) == (0, 9)
    np.testing.assert_array_equal(matrix, row([5, 6], [2, 1]).toarray())


UNKNOWN, BAD = UnknownIdError, ValueError
ERRORS = [
    (Recommend(user="nobody"), UNKNOWN, "unknown user 'nobody': the model knows 200"),
    (Recommend(user=3), UNKNOWN, "its ids are strings, convert these"),
    (Recommend(history=(3, 4)), UNKNOWN, "no item of the history is known.*strings"),
    (Recommend(), BAD, "give either a user or a history"),
    (Recommend(user="user 3", history=("item 1",)), BAD, "either a user or a history"),
    (Recommend(user="user 3", weights=()), BAD, "weights go with a history"),
    (Explain("item 3", user="user 3"), BAD, "not known to the service; give a history"),
    (Recommend(history=("item 1",), weights=()), BAD, "length of 0, and the history"),
    (Recommend(history=("item 1",), weights=(0.0,)), BAD, "weight 0 is 0.0"),
    (Recommend(history=("item 1",), weights=(float("nan"),)), BAD, "weight 0 is nan"),
    (Similar("nothing"), UNKNOWN, "unknown item 'nothing'"),
    (Explain("nothing", None, ("item 1",)), UNKNOWN, "unknown item 'nothing'"),
]


@pytest.mark.parametrize(("request_", "kind", "message"), ERRORS)
def test_a_bad_request_gets_its_error_and_leaves_the_others_alone(model, request_, kind, message):
    engine = Engine(Explaining(model))
    good = Recommend(history=("item 5",))
    first, problem, last = engine.answer([good, request_, good])
    assert first == last == engine.answer([good])[0]
    with pytest.raises(kind, match=message):
        raise problem


def test_users_of_models_without_user_factors_need_a_history():
    (problem,) = Engine(MODELS["EASE"]()).answer([Recommend(user="user 3")])
    with refused(ValueError, "EASE stores nothing of the users; give a history"):
        raise problem


def test_items_without_an_id_are_never_recommended():
    model = fit()
    new = scipy.sparse.csr_matrix(np.ones((1, 200), dtype=np.float32))
    model.partial_fit_items([ITEMS], new)
    answers = Engine(model).answer([Recommend(history=("item 5",), k=ITEMS), Similar("item 5", 99)])
    for answer in answers:
        assert set(answer.ids) <= set(names(range(ITEMS)))


def test_numbers_are_ids_where_the_model_has_none():
    model = SAFER2(8, iterations=2, random_state=0).fit(named().to_csr(), show_progress=False)
    engine = Engine(model)
    found, unknown = engine.answer([Recommend(user=9, k=5), Recommend(user="9")])
    ids, scores = model.recommend(9, None, N=5, filter_already_liked_items=False)
    assert (found.ids, found.scores) == (ids.tolist(), scores.tolist())
    with pytest.raises(UnknownIdError, match=r"unknown user '9': .*its ids are integers"):
        raise unknown


def shuffled(known, rng, extra=0):
    """Return the same interactions with other numbers, and with some items that are new."""
    rows, columns = rng.permutation(known.num_users), rng.permutation(known.num_items)
    matrix = known.to_csr()[rows][:, columns]
    ids = list(known.item_ids[columns]) + [f"new {each}" for each in range(extra)]
    more = scipy.sparse.csr_matrix(np.ones((known.num_users, extra), dtype=np.float32))
    whole = scipy.sparse.hstack([matrix, more], format="csr")
    return Interactions.from_csr(whole, user_ids=known.user_ids[rows], item_ids=ids)


@pytest.mark.parametrize("other", [False, True], ids=["same numbers", "other numbers"])
def test_known_users_do_not_get_what_they_have(model, rng, other):
    known = named()
    data = shuffled(known, rng) if other else known
    engine, matrix = Engine(model, data), known.to_csr()
    users = [3, 50, 7, 0]
    ids, scores = model.recommend(np.array(users), matrix[users], N=5)
    answers = engine.answer([Recommend(user=f"user {user}", k=5) for user in users])
    assert [answer.ids for answer in answers] == [list(names(row)) for row in ids]
    assert [answer.scores for answer in answers] == scores.tolist()
    assert all(answer.history_removed for answer in answers)
    kept, plain = (
        each.answer([Recommend(user="user 3", k=5, keep_history=True)])[0]
        for each in (engine, Engine(model))
    )
    assert kept == plain
    assert not kept.history_removed
    chosen = (*names(matrix[3].indices[:3]), "item 40")
    (answer,) = engine.answer([Recommend(user="user 3", items=chosen)])
    assert answer.ids == [each for each in ["item 40"] if 40 not in matrix[3].indices]


def test_scores_of_known_users_are_explained(model, rng):
    engine, matrix = Engine(model, shuffled(named(), rng)), named().to_csr()
    score, parts, _ = model.explain(0, matrix[3], 9, N=4)
    (answer,) = engine.answer([Explain("item 9", user="user 3", k=4)])
    assert answer.score == pytest.approx(score)
    assert answer.ids == list(names(place for place, _ in parts))
    assert dict(engine.history("user 3")) == dict.fromkeys(names(matrix[3].indices), 1.0)


def test_users_and_models_that_the_model_stores_nothing_of_are_folded_in(model):
    known = named()
    new = Interactions.from_csr(
        known.to_csr()[[5, 6]], user_ids=["user 5", "eve"], item_ids=known.item_ids
    )
    history = Recommend(history=names(known.to_csr()[6].indices))
    for each in (model, MODELS["EASE"]()):
        engine = Engine(each, new)
        right, found = engine.answer([history, Recommend(user="eve")])
        assert found == right
    (unknown,) = Engine(model, new).answer([Recommend(user="user 7")])
    assert not unknown.history_removed  # the data has nothing of this user
    with pytest.raises(UnknownIdError, match="unknown user 'adam'"):
        raise Engine(model, new).answer([Recommend(user="adam")])[0]


def test_weights_of_the_data_are_those_of_the_fold_in(rng):
    known = named()
    matrix = known.to_csr()
    matrix.data = rng.uniform(0.5, 3, matrix.nnz).astype(np.float32)
    data = Interactions.from_csr(matrix, user_ids=known.user_ids, item_ids=known.item_ids)
    model = fit_on(data)
    score, _, _ = model.explain(0, matrix[3], 9)
    (answer,) = Engine(model, data).answer([Explain("item 9", user="user 3")])
    assert answer.score == pytest.approx(score)


def test_items_of_the_data_that_the_model_does_not_know_are_left_out(model, rng):
    with pytest.warns(ParameterWarning, match="2 of 61 items .* are unknown to the model"):
        engine = Engine(model, shuffled(named(), rng, extra=2))
    found, right = (
        each.answer([Recommend(user="user 3")])[0] for each in (engine, Engine(model, named()))
    )
    assert found == right


def test_data_of_other_items_or_without_ids_is_refused(model):
    other = Interactions.from_frame({"user": ["user 3"], "item": ["x"]})
    with pytest.raises(KeyError, match=r"all 1 items .* unknown to the model"):
        Engine(model, other)
    with pytest.raises(TypeError, match="no item ids, while the model was trained with some"):
        Engine(model, Interactions.from_csr(named().to_csr()))
