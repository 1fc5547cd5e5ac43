"""Original ids: kept by `fit`, asked and answered in frames, found by partial fits."""

import io

import numpy as np
import pyarrow.compute as pc
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions, ParameterWarning
from tests.contract.subjects import ALS, FACTORS, ITEMS, SOME, USERS, fitted, only
from tests.helpers import refused

BACKWARDS = np.arange(15)[::-1]
STORED = {"filter_already_liked_items": False}
KINDS = {
    "strings": Interactions.from_csr(SOME, USERS, ITEMS),
    "integers": Interactions.from_csr(SOME.T.tocsr(), ITEMS, USERS),
    "none": Interactions.from_csr(SOME),
}
GIVEN = KINDS["strings"]


@pytest.fixture
def named(make):
    return fitted(make(), GIVEN)


def ids_of(interactions):
    users, items = interactions.user_ids, interactions.item_ids
    if users is None:
        return np.arange(interactions.num_users), np.arange(interactions.num_items)
    return users, items


def rows_of(table):
    assert table.column_names == ["user", "item", "score", "rank", "popular"]
    return [tuple(row.values()) for row in table.to_pylist()]


def expected_rows(model, interactions, numbers, **options):
    users, items = ids_of(interactions)
    histories = interactions.to_csr()[numbers]
    ids, scores = model.recommend(numbers, histories, **options)
    popular = histories.getnnz(axis=1) == 0
    return [
        (users[numbers[at]], items[ids[at, rank]], scores[at, rank], rank + 1, popular[at])
        for at in range(len(numbers))
        for rank in range(ids.shape[1])
        if ids[at, rank] >= 0
    ]


def reloaded(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return safecf.load(file)


def alike(one, other):
    assert (one is None) == (other is None)
    np.testing.assert_array_equal(one, other)
    return one is None or one.dtype == other.dtype


# Recommendations


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_recommend_with_names(make, name, kind):
    given = KINDS[kind]
    model, (users, items) = fitted(make(), given), ids_of(given)
    table = model.recommend_frame(N=4, user_items=given)
    assert rows_of(table) == expected_rows(model, given, np.arange(given.num_users), N=4)
    some = np.array([3, 0, 3])
    for asked in (
        {},
        {"N": 3, **STORED},
        {"items": [1, 4, 5]},
        {"filter_items": [0, 2]},
    ):
        lists = {k: items[v] for k, v in asked.items() if k in ("items", "filter_items")}
        table = model.recommend_frame(users[some], user_items=given, **(asked | lists))
        assert rows_of(table) == expected_rows(model, given, some, **asked)
    table = model.recommend_frame(users[2], user_items=given)
    assert rows_of(table) == expected_rows(model, given, np.array([2]))
    assert model.recommend_frame([], user_items=given).schema == table.schema
    if name in FACTORS:  # which need no histories
        table = model.recommend_frame(users[2], 3, **STORED)
        assert rows_of(table) == expected_rows(model, given, np.array([2]), N=3, **STORED)


@pytest.mark.parametrize("kind", KINDS)
def test_models_and_files_keep_the_ids(make, family, kind):
    given = KINDS[kind]
    model = fitted(make(), given)
    other = reloaded(model)
    for ours, file, theirs in (
        (model.user_ids, other.user_ids, given.user_ids),
        (model.item_ids, other.item_ids, given.item_ids),
    ):
        assert alike(ours, theirs)
        assert alike(ours, file)
    tables = [each.recommend_frame(user_items=given) for each in (model, other)]
    assert tables[0].equals(tables[1])
    fitted(model, given.to_csr())
    assert (model.user_ids, model.item_ids) == (None, None)


def test_new_users_by_their_histories(named, family):
    """Other users, and the items in another order with one that the model does not know."""
    columns = np.array([3, 0, 5, 1, 2])
    history = sp.csr_matrix(np.array([[1, 2, 0, 1, 0, 3], [0, 1, 1, 0, 1, 0]], dtype=np.float32))
    new = Interactions.from_csr(history, ["new", "newer"], [*ITEMS[columns], 9999])
    words = "1 of 6 items in the users' histories are unknown to the model .* such as 9999"
    with pytest.warns(ParameterWarning, match=words):
        table = named.recommend_frame(user_items=new, recalculate_user=True, N=3)
    known = sp.lil_matrix((2, 15), dtype=np.float32)
    known[:, columns] = history[:, :5]
    ids, scores = named.recommend([0, 1], known.tocsr(), N=3, recalculate_user=True)
    assert table["user"].to_pylist() == ["new"] * 3 + ["newer"] * 3
    assert table["item"].to_pylist() == ITEMS[ids].ravel().tolist()
    np.testing.assert_array_equal(table["score"].to_numpy(), scores.ravel())
    assert table["rank"].to_pylist() == [1, 2, 3] * 2


def test_users_of_whom_nothing_is_known_are_counted_and_flagged(named, family):
    history = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32))
    new = Interactions.from_csr(history, ["some", "lost", "none"], [*ITEMS[:2], 9999])
    words = r"1 of 3 items in .* such as 9999; 1 of 3 users have no others$"
    with pytest.warns(ParameterWarning, match=words):
        table = named.recommend_frame(user_items=new, recalculate_user=True, N=3)
    flags = dict(zip(table["user"].to_pylist(), table["popular"].to_pylist(), strict=True))
    assert flags == {"some": False, "lost": True, "none": True}
    most = ITEMS[np.argsort(-named.item_popularity, kind="stable")[:3]].tolist()
    assert table["item"].to_pylist()[3:] == 2 * most
    with refused(KeyError, "all 1 items in the users' histories are unknown"):
        named.recommend_frame("lost", N=3, user_items=new, recalculate_user=True)


def test_unknown_ids_are_named(named, family):
    options, few = {"user_items": GIVEN}, Interactions.from_csr(SOME[:3], USERS[:3], ITEMS)
    strings = Interactions.from_csr(SOME, USERS, [str(each) for each in ITEMS])
    elsewhere = Interactions.from_csr(SOME, USERS, ITEMS + 1000)
    for ask, words in (
        (lambda: named.recommend_frame([USERS[0], "nobody"], **options), "user 'nobody': 24 are"),
        (lambda: named.recommend_frame(3, **options), "unknown user 3"),
        (lambda: named.recommend_frame(items=[8, 9], **options), "unknown item (in items) 8"),
        (lambda: named.recommend_frame(items=["7"], **options), "unknown item (in items) '7'"),
        (lambda: named.recommend_frame(filter_items=["x"], **options), "(in filter_items) 'x'"),
        (lambda: named.recommend_frame(user_items=few), "unknown user (in user_items) 'user-20"),
        (lambda: named.recommend_all(few.__class__.from_csr(SOME[:1], ["new"], ITEMS)), "'new'"),
        (lambda: named.similar_items_frame("nobody"), "unknown item 'nobody'"),
        (lambda: named.similar_items_frame(among=["x"]), "unknown item (in among) 'x'"),
    ):
        with pytest.raises(KeyError) as caught:
            ask()
        assert words in str(caught.value)
    for again in (False, True):
        words = "they are strings, while those of the training data are integers; convert them"
        with refused(KeyError, "all 14 items", words):
            named.recommend_frame(user_items=strings, recalculate_user=again)
        with refused(KeyError, "all 14 items", "such as 1007, where 7 is known: use the item ids"):
            named.recommend_frame(user_items=elsewhere, recalculate_user=again)
    if family in FACTORS:
        with pytest.raises(KeyError, match="unknown user 'nobody'"):
            named.similar_users_frame("nobody")
        with pytest.raises(KeyError, match=r"unknown user \(in among\) 'x'"):
            named.similar_users_frame(among=["x"])


def test_integers_are_not_found_among_strings(make, family):
    """Ids of items are strings here; what holds them as numbers is refused."""
    digits = np.array([str(each) for each in ITEMS], dtype=object)
    model = fitted(make(), Interactions.from_csr(SOME, USERS, digits))
    given = Interactions.from_csr(SOME, USERS, digits)
    with refused(KeyError, "they are integers, while those of the training data are strings"):
        model.recommend_frame(user_items=GIVEN)
    for name in ("items", "filter_items"):
        with pytest.raises(KeyError, match="unknown item"):
            model.recommend_frame(user_items=given, **{name: ITEMS[:2]})


def test_row_numbers_are_not_taken_for_ids(named, family):
    """Row 7 is not the item 7."""
    with refused(TypeError, "user_items has no item ids, while", "such as 7; try Interactions"):
        named.recommend_frame(user_items=Interactions.from_csr(SOME))
    no_users = Interactions.from_csr(SOME, None, ITEMS)
    with refused(TypeError, "user_items has no user ids, while", "; try Interactions"):
        named.recommend_frame(user_items=no_users)
    table = named.recommend_frame(user_items=no_users, recalculate_user=True, N=1)
    assert table["user"].to_pylist() == list(range(24))
    with refused(TypeError, "NoneType, not Interactions; pass what the users already"):
        named.recommend_frame()
    with refused(IndexError, "give row numbers; recommend_frame takes original ids"):
        named.recommend("ann", SOME[0])
    with refused(IndexError, "give row numbers; similar_items_frame takes original ids"):
        named.similar_items("Alien")


def test_unknown_items_of_lists_are_left_out(named, family):
    """To leave out what is not there is harmless, and so is a rest that is known."""
    words = "2 of 2 ids in filter_items are unknown to the model and left out, such as 8"
    with pytest.warns(ParameterWarning, match=words):
        found = named.recommend_frame(user_items=GIVEN, filter_items=[8, 9])
    assert found.equals(named.recommend_frame(user_items=GIVEN))
    with pytest.warns(ParameterWarning, match="1 of 3 ids in items are unknown to the model"):
        found = named.recommend_frame(user_items=GIVEN, items=[7, 8, 17])
    assert found.equals(named.recommend_frame(user_items=GIVEN, items=[7, 17]))


def test_everybody_at_once_by_ids(named, family):
    backwards = Interactions.from_csr(SOME[::-1][:20][:, ::-1], USERS[::-1][:20], ITEMS[::-1])
    for again in (False, True):
        expected = named.recommend_all(SOME, N=4, recalculate_user=again)[::-1][:20]
        found = named.recommend_all(backwards, N=4, recalculate_user=again)
        np.testing.assert_array_equal(found, expected)
    new = Interactions.from_csr(SOME[:1], ["new"], ITEMS)
    first = named.recommend_all(GIVEN, N=4, recalculate_user=True)[:1]
    np.testing.assert_array_equal(named.recommend_all(new, N=4, recalculate_user=True), first)


# Similar ones


def similar_rows(model, side, numbers, N=10, **options):
    """Return what the method by numbers does, without what is asked for itself."""
    names, rows = ITEMS if side == "items" else USERS, []
    for number in numbers:
        found = zip(*getattr(model, f"similar_{side}")(number, N=N + 1, **options), strict=True)
        others = [(at, score) for at, score in found if at not in (-1, number)][:N]
        rows += [
            (names[number], names[at], score, rank)
            for rank, (at, score) in enumerate(others, start=1)
        ]
    return rows


def test_frames_of_similar_ones(named, name):
    for side, names in (
        (("items", ITEMS), ("users", USERS)) if name in FACTORS else (("items", ITEMS),)
    ):
        frame = getattr(named, f"similar_{side}_frame")
        assert frame(N=4).column_names == [side[:-1], "similar", "score", "rank"]

        def rows(*asked, **options):
            return [tuple(row.values()) for row in frame(*asked, **options).to_pylist()]  # noqa: B023

        some = np.array([3, 0, 3])
        assert rows(N=4) == similar_rows(named, side, np.arange(names.size), N=4)
        assert rows(names[some]) == similar_rows(named, side, some)
        few = rows(names[2], 3, among=names[[1, 2, 5]])
        assert few == similar_rows(named, side, [2], N=3, **{side: [1, 2, 5]})
        few = rows(names[some], **{f"filter_{side}": names[[0, 1]]})
        assert few == similar_rows(named, side, some, **{f"filter_{side}": [0, 1]})
        assert frame([]).schema == frame().schema


# Fold-in and partial fits by ids


@only(FACTORS)
def test_fold_in_finds_the_items(named, family):
    given = Interactions.from_csr(SOME[:5][:, BACKWARDS], None, ITEMS[BACKWARDS])
    np.testing.assert_array_equal(named.fold_in(given), named.fold_in(SOME[:5]))
    some = Interactions.from_csr(SOME[:5], None, [*ITEMS[:12], 1, 2, 3])
    with pytest.warns(ParameterWarning, match="items in the users' histories are unknown to the"):
        found = named.fold_in(some)
    without = SOME[:5].multiply(np.arange(15) < 12).tocsr()
    np.testing.assert_array_equal(found, named.fold_in(without))
    with refused(KeyError, "items in the users' histories are unknown to the model, such as"):
        named.fold_in(Interactions.from_csr(SOME[:5], None, ITEMS + 1))
    with refused(TypeError, "user_items has no item ids, while the model was trained"):
        named.fold_in(Interactions.from_csr(SOME))


@only(FACTORS)
def test_users_are_replaced_and_added(named, name):
    before = named.user_factors.copy()
    rows = SOME[[7, 8, 9]][:, BACKWARDS]
    given = Interactions.from_csr(rows, ["new", USERS[3], "newer"], ITEMS[BACKWARDS])
    named.recommend_frame(USERS[:2], **STORED)  # looks ids up
    named.partial_fit_users(given)
    assert named.user_ids.tolist() == [*USERS, "new", "newer"]
    expected = np.vstack([before, before[[7, 9]]])
    expected[3] = before[8]
    np.testing.assert_array_equal(named.user_factors, expected)
    everybody = sp.vstack([SOME, SOME[[7, 9]]]).tocsr()
    histories = Interactions.from_csr(everybody, named.user_ids, ITEMS)
    for model in (named, reloaded(named)):
        added, known = (
            model.recommend_frame(user, user_items=histories).drop(["user"])
            for user in ("newer", USERS[9])
        )
        assert added.equals(known)


@only(ALS)
def test_items_are_replaced_and_added(named, name):
    audience = SOME.T.tocsr()
    matrix = audience[[2, 3, 5]].T.tocsr()[::-1]
    given = Interactions.from_csr(matrix, USERS[::-1], [1, ITEMS[0], 2])
    factors = named.recalculate_item([0, 1, 2], audience[[2, 3, 5]])
    shares = named.item_popularity.copy()
    named.partial_fit_items(given)
    assert named.item_ids.tolist() == [*ITEMS, 1, 2]
    np.testing.assert_array_equal(named.item_factors[[15, 0, 16]], factors)
    np.testing.assert_array_equal(named.item_popularity[[15, 0, 16]], shares[[2, 3, 5]])
    for model in (named, reloaded(named)):
        table = model.recommend_frame(USERS[1], 17, **STORED)
        assert set(table["item"].to_pylist()) == {*ITEMS.tolist(), 1, 2}
        assert 2 in model.similar_items_frame(1, N=17)["similar"].to_pylist()


@only(ALS)
def test_unknown_users_of_items_are_left_out(named, family):
    few = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), [*USERS[:2], "nobody"], [1])
    audience = sp.csr_matrix(([1.0, 2.0], [0, 1], [0, 2]), shape=(1, 24))
    expected = named.recalculate_item(0, audience)
    with pytest.warns(ParameterWarning, match="1 of 3 users of the items are unknown .* 'nobody'"):
        named.partial_fit_items(few)
    np.testing.assert_array_equal(named.item_factors[15], expected)
    before, shares = named.item_factors.copy(), named.item_popularity.copy()
    nobody = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), ["a", "b", "c"], [7])
    with pytest.warns(ParameterWarning, match="3 of 3 users of the items .* stay as they were"):
        named.partial_fit_items(nobody)
    np.testing.assert_array_equal(named.item_factors, before)
    np.testing.assert_array_equal(named.item_popularity, shares)
    numbers = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), [1, 2, 3], [7])
    with refused(KeyError, "they are integers, while those of the training data are strings"):
        named.partial_fit_items(numbers)


@pytest.mark.parametrize("others", [0, 1, 2])
@only(FACTORS)
def test_known_users_of_unknown_items_stay_as_they_were(named, family, others):
    """Whether they are alone, with a new user who is cold then, or with one of known items."""
    before = named.user_factors.copy()
    rows = sp.csr_matrix([[1, 0], [1, 0], [0, 1]])[[*range(1 + others)]]
    given = Interactions.from_csr(rows, [USERS[3], "cold", "new"][: 1 + others], [1, ITEMS[0]])
    with pytest.warns(ParameterWarning, match="whom the model knows stay as they were"):
        named.partial_fit_users(given)
    np.testing.assert_array_equal(named.user_factors[:24], before)
    assert named.user_ids.tolist() == [*USERS, "cold", "new"][: 24 + others]
    table = named.recommend_frame(named.user_ids[24:], **STORED)
    first = table.filter(pc.equal(table["rank"], 1))
    assert first["popular"].to_pylist() == [True, False][:others]


@only(FACTORS)
def test_without_ids_users_are_row_numbers(make, family):
    model = fitted(make(), SOME)
    before = model.user_factors.copy()
    model.partial_fit_users(Interactions.from_csr(SOME[[5, 6]]))
    np.testing.assert_array_equal(model.user_factors[:2], before[[5, 6]])
    model.partial_fit_users(Interactions.from_csr(SOME[[7, 8]], [24, 1]))
    np.testing.assert_array_equal(model.user_factors[[24, 1]], before[[7, 8]])
    assert model.user_ids is None


@only(FACTORS)
def test_what_cannot_be_joined_leaves_no_trace(named, family):
    texts = [str(each) for each in ITEMS]
    numbers = Interactions.from_csr(SOME, np.arange(24), ITEMS)
    for given, error, *words in (
        ((numbers,), TypeError, "ids of users are integers, ", " are strings; convert them"),
        ((Interactions.from_csr(SOME, None, ITEMS),), TypeError, "user_items has no user ids"),
        ((Interactions.from_csr(SOME, USERS, texts),), KeyError, "they are strings, while those"),
        ((GIVEN, SOME), TypeError, "or an Interactions alone; leave the matrix out"),
        (([1, 2],), ValueError, "user_items has to be a sparse matrix"),
    ):
        with refused(error, *words, unchanged=named):
            named.partial_fit_users(*given)
    if family not in ALS:
        with refused(NotImplementedError, f"{family} cannot compute an item from its users"):
            named.partial_fit_items(GIVEN)


@only(FACTORS)
def test_users_without_an_id_need_one_first(named, family):
    named.partial_fit_users([24], SOME[0])
    new = Interactions.from_csr(SOME[:1], ["new"], ITEMS)
    with refused(
        ValueError, "1 users have no id, ", " append their ids to model.user", unchanged=named
    ):
        named.partial_fit_users(new)
    named.user_ids = np.append(named.user_ids, "late")
    named.partial_fit_users(new)
    assert named.user_ids.tolist() == [*USERS, "late", "new"]


@only(ALS)
def test_what_a_partial_fit_adds_has_no_name_until_it_gets_one(named, family):
    named.partial_fit_items([15], SOME.T.tocsr()[0])
    named.partial_fit_users([24], SOME[0])
    table = named.recommend_frame(N=16, **STORED)
    assert set(table["user"].to_pylist()) == set(USERS)
    assert set(table["item"].to_pylist()) == set(ITEMS.tolist())
    assert set(named.similar_users_frame(N=25)["similar"].to_pylist()) <= set(USERS)
    assert set(named.similar_items_frame(N=16)["similar"].to_pylist()) <= set(ITEMS.tolist())
    named.user_ids = np.append(named.user_ids, "late")
    named.item_ids = np.append(named.item_ids, 1)
    table = named.recommend_frame("late", N=16, **STORED)
    assert set(table["item"].to_pylist()) == {*ITEMS.tolist(), 1}
    assert reloaded(named).user_ids.tolist() == [*USERS, "late"]
