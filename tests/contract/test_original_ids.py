"""Original ids: kept by `fit`, asked by `recommend_frame`, stored in files."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions, ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only

LETTERS = np.array([f"user-{n:02d}é" for n in range(24)][::-1], dtype=object)
NUMBERS = np.arange(15) * 10 + 7


@pytest.fixture(params=["strings", "integers", "none"])
def named(request, data):
    if request.param == "none":
        return Interactions.from_csr(data)
    users, items = (LETTERS, NUMBERS) if request.param == "strings" else (NUMBERS, LETTERS)
    if request.param == "integers":
        return Interactions.from_csr(data.T.tocsr(), users, items)
    return Interactions.from_csr(data, users, items)


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


def test_fit_keeps_the_ids(make, named):
    model = make().fit(named, show_progress=False)
    for ours, theirs in ((model.user_ids, named.user_ids), (model.item_ids, named.item_ids)):
        assert (ours is None) == (theirs is None)
        np.testing.assert_array_equal(ours, theirs)
    model.fit(named.to_csr(), show_progress=False)
    assert model.user_ids is None
    assert model.item_ids is None


def test_frames_are_recommend_with_names(make, named):
    model = make().fit(named, show_progress=False)
    users, items = ids_of(named)
    everybody = np.arange(named.num_users)
    table = model.recommend_frame(N=4, user_items=named)
    assert rows_of(table) == expected_rows(model, named, everybody, N=4)
    some = np.array([3, 0, 3])
    table = model.recommend_frame(users[some], user_items=named)
    assert rows_of(table) == expected_rows(model, named, some)
    options = {"filter_already_liked_items": False}
    table = model.recommend_frame(users[2], 3, user_items=named, **options)
    assert rows_of(table) == expected_rows(model, named, np.array([2]), N=3, **options)
    table = model.recommend_frame(users[some], user_items=named, items=items[[1, 4, 5]])
    assert rows_of(table) == expected_rows(model, named, some, items=[1, 4, 5])
    table = model.recommend_frame(users[some], user_items=named, filter_items=items[[0, 2]])
    assert rows_of(table) == expected_rows(model, named, some, filter_items=[0, 2])


def test_a_frame_of_nobody_has_the_same_types(make, named):
    model = make().fit(named, False)
    everybody = model.recommend_frame(user_items=named)
    assert model.recommend_frame([], user_items=named).schema == everybody.schema


@only(MatrixFactorization)
def test_known_users_need_no_histories(make, named):
    model = make().fit(named, show_progress=False)
    users, _ = ids_of(named)
    options = {"filter_already_liked_items": False}
    table = model.recommend_frame(users[2], 3, **options)
    assert rows_of(table) == expected_rows(model, named, np.array([2]), N=3, **options)


def test_new_users_by_their_histories(make, data):
    model = make().fit(Interactions.from_csr(data, LETTERS, NUMBERS), show_progress=False)
    # Other users, and the items in another order with one that the model does not know.
    columns = np.array([3, 0, 5, 1, 2])
    history = sp.csr_matrix(np.array([[1, 2, 0, 1, 0, 3], [0, 1, 1, 0, 1, 0]], dtype=np.float32))
    new = Interactions.from_csr(history, ["new", "newer"], [*NUMBERS[columns], 9999])
    with pytest.warns(
        ParameterWarning,
        match="1 of 6 items in the users' histories are unknown to the model .* such as 9999",
    ):
        table = model.recommend_frame(user_items=new, recalculate_user=True, N=3)
    known = sp.lil_matrix((2, 15), dtype=np.float32)
    known[:, columns] = history[:, :5]
    ids, scores = model.recommend([0, 1], known.tocsr(), N=3, recalculate_user=True)
    assert table["user"].to_pylist() == ["new"] * 3 + ["newer"] * 3
    assert table["item"].to_pylist() == NUMBERS[ids].ravel().tolist()
    np.testing.assert_array_equal(table["score"].to_numpy(), scores.ravel())
    assert table["rank"].to_pylist() == [1, 2, 3] * 2


def test_unknown_ids_are_named(make, data):
    named = Interactions.from_csr(data, LETTERS, NUMBERS)
    model = make().fit(named, show_progress=False)
    options = {"filter_already_liked_items": False, "user_items": named}
    with pytest.raises(KeyError, match="unknown user 'nobody': 24 are known"):
        model.recommend_frame([LETTERS[0], "nobody"], **options)
    with pytest.raises(KeyError, match="unknown user 3"):
        model.recommend_frame(3, **options)
    with pytest.raises(KeyError, match=r"unknown item \(in items\) 8"):
        model.recommend_frame(items=[8, 9], **options)
    with pytest.raises(KeyError, match=r"unknown item \(in filter_items\) 'x'"):
        model.recommend_frame(filter_items=["x"], **options)
    few = Interactions.from_csr(data[:3], LETTERS[:3], NUMBERS)
    with pytest.raises(KeyError, match=r"unknown user \(in user_items\) 'user-20"):
        model.recommend_frame(user_items=few)
    with pytest.raises(TypeError, match="NoneType, not Interactions; pass what the users already"):
        model.recommend_frame()
    with pytest.raises(safecf.NotFittedError, match="is not fitted; call fit first"):
        make().recommend_frame(**options)


def test_unknown_items_of_lists_are_left_out(make, data):
    """To leave out what is not there is harmless, and so is a rest that is known."""
    named = Interactions.from_csr(data, LETTERS, NUMBERS)
    model = make().fit(named, show_progress=False)
    told = "2 of 2 ids in filter_items are unknown to the model and left out, such as 8"
    with pytest.warns(ParameterWarning, match=told):
        found = model.recommend_frame(user_items=named, filter_items=[8, 9])
    assert found.equals(model.recommend_frame(user_items=named))
    with pytest.warns(ParameterWarning, match="1 of 3 ids in items are unknown to the model"):
        found = model.recommend_frame(user_items=named, items=[7, 8, 17])
    assert found.equals(model.recommend_frame(user_items=named, items=[7, 17]))


def test_ids_that_are_asked_for_twice_are_answered_twice(make, data):
    named = Interactions.from_csr(data, LETTERS, NUMBERS)
    model = make().fit(named, show_progress=False)
    found = model.recommend_frame([LETTERS[3]] * 2, user_items=named).to_pylist()
    assert found == 2 * model.recommend_frame([LETTERS[3]], user_items=named).to_pylist()


def test_methods_by_numbers_name_those_by_ids(make, data):
    model = make().fit(Interactions.from_csr(data.T.tocsr(), NUMBERS, LETTERS), show_progress=False)
    with pytest.raises(IndexError, match="give row numbers; similar_items_frame takes original"):
        model.similar_items(LETTERS[0])
    with pytest.raises(IndexError, match="give row numbers; recommend_frame takes original ids"):
        model.recommend("ann", data.T.tocsr()[0])


@pytest.mark.parametrize("recalculate_user", [False, True])
@pytest.mark.parametrize("trained", ["strings", "integers"])
def test_histories_in_ids_of_another_type_are_refused(make, data, recalculate_user, trained):
    digits = np.array([str(number) for number in NUMBERS], dtype=object)
    ours, theirs = (digits, NUMBERS) if trained == "strings" else (NUMBERS, digits)
    other = "integers" if trained == "strings" else "strings"
    model = make().fit(Interactions.from_csr(data, LETTERS, ours), show_progress=False)
    history = Interactions.from_csr(data, LETTERS, theirs)
    with pytest.raises(
        KeyError,
        match=f"all 14 items .* are unknown .* they are {other}, while .* are {trained}; convert",
    ):
        model.recommend_frame(user_items=history, recalculate_user=recalculate_user)
    with pytest.raises(KeyError, match="unknown item"):
        model.recommend_frame(items=theirs[:2], user_items=model_history(data, ours))
    with pytest.raises(KeyError, match="unknown item"):
        model.recommend_frame(filter_items=theirs[:2], user_items=model_history(data, ours))


def model_history(data, items):
    return Interactions.from_csr(data, LETTERS, items)


def test_histories_of_other_items_are_refused(make, data):
    model = make().fit(model_history(data, NUMBERS), show_progress=False)
    with pytest.raises(KeyError, match=r"all 14 items .* such as 1007, where 7 is known: use the"):
        model.recommend_frame(user_items=model_history(data, NUMBERS + 1000))


def test_users_of_whom_nothing_is_known_are_counted_and_flagged(make, data):
    model = make().fit(Interactions.from_csr(data, LETTERS, NUMBERS), show_progress=False)
    history = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32))
    new = Interactions.from_csr(history, ["some", "lost", "none"], [*NUMBERS[:2], 9999])
    told = r"1 of 3 items in .* such as 9999; 1 of 3 users have no others$"
    with pytest.warns(ParameterWarning, match=told):
        table = model.recommend_frame(user_items=new, recalculate_user=True, N=1)
    flags = dict(zip(table["user"].to_pylist(), table["popular"].to_pylist(), strict=True))
    assert flags == {"some": False, "lost": True, "none": True}


def test_row_numbers_are_not_taken_for_ids(make, data):
    """Row 7 is not the item 7."""
    model = make().fit(Interactions.from_csr(data, np.arange(24) + 1, NUMBERS), show_progress=False)
    with pytest.raises(
        TypeError, match=r"user_items has no item ids, while .* such as 7; try Inte"
    ):
        model.recommend_frame(user_items=Interactions.from_csr(data))
    with pytest.raises(
        TypeError, match=r"user_items has no user ids, while .* such as 1; try Inte"
    ):
        model.recommend_frame(user_items=Interactions.from_csr(data, None, NUMBERS))
    new = Interactions.from_csr(data, None, NUMBERS)
    table = model.recommend_frame(user_items=new, recalculate_user=True, N=1)
    assert table["user"].to_pylist() == list(range(24))


@only(ALSModel)
def test_what_a_partial_fit_adds_has_no_name_until_it_gets_one(make, data):
    named = Interactions.from_csr(data, LETTERS, NUMBERS)
    model = make().fit(named, show_progress=False)
    model.partial_fit_items([15], data.T.tocsr()[0])
    model.partial_fit_users([24], data[0])
    options = {"filter_already_liked_items": False, "N": 16}
    table = model.recommend_frame(**options)
    assert set(table["user"].to_pylist()) == set(LETTERS)
    assert set(table["item"].to_pylist()) == set(NUMBERS.tolist())
    model.user_ids = np.append(model.user_ids, "late")
    model.item_ids = np.append(model.item_ids, 1)
    table = model.recommend_frame("late", **options)
    assert set(table["item"].to_pylist()) == {*NUMBERS.tolist(), 1}
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert safecf.load(file).user_ids.tolist() == [*LETTERS, "late"]


def test_files_hold_the_ids(make, named, tmp_path):
    model = make().fit(named, show_progress=False)
    model.save(tmp_path / "model")
    other = safecf.load(tmp_path / "model")
    for ours, theirs in ((other.user_ids, model.user_ids), (other.item_ids, model.item_ids)):
        assert (ours is None) == (theirs is None)
        np.testing.assert_array_equal(ours, theirs)
        assert ours is None or ours.dtype == theirs.dtype
    tables = [each.recommend_frame(user_items=named) for each in (model, other)]
    assert tables[0].equals(tables[1])


def test_everybody_at_once_by_ids(make, data):
    given = Interactions.from_csr(data, LETTERS, NUMBERS)
    model = make().fit(given, show_progress=False)
    backwards = Interactions.from_csr(data[::-1][:20][:, ::-1], LETTERS[::-1][:20], NUMBERS[::-1])
    for again in (False, True):
        expected = model.recommend_all(data, N=4, recalculate_user=again)[::-1][:20]
        found = model.recommend_all(backwards, N=4, recalculate_user=again)
        np.testing.assert_array_equal(found, expected)
    new = Interactions.from_csr(data[:1], ["new"], NUMBERS)
    first = model.recommend_all(given, N=4, recalculate_user=True)[:1]
    np.testing.assert_array_equal(model.recommend_all(new, N=4, recalculate_user=True), first)
    with pytest.raises(KeyError, match=r"unknown user .*new"):
        model.recommend_all(new)
