"""Recommendations into files: formats, parts, cold users, and what an interrupt leaves."""

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf import IALS, Interactions, ParameterWarning
from safecf.batch import COMPRESSED, FORMATS, json_lines, recommend_to_file
from safecf.models import answers
from tests.batch.problem import DATA, EMPTY, ITEMS, MATRIX, USERS, write
from tests.helpers import refused

COLUMNS = ["user", "item", "score", "rank", "popular"]


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def read(path):
    """Return the rows of a file of any format."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if ".jsonl" in path.suffixes:
        rows = [json.loads(line) for line in content.splitlines()]
        assert all(list(row) == COLUMNS for row in rows)
        return [(*row.values(),) for row in rows]
    buffer = pa.BufferReader(content)
    table = pa.csv.read_csv(buffer) if ".csv" in path.suffixes else pa.parquet.read_table(buffer)
    assert table.column_names == COLUMNS
    return rows_of(table)


def as_float32(rows):
    return [(user, item, np.float32(score), rank, flag) for user, item, score, rank, flag in rows]


@pytest.mark.parametrize("suffix", [*FORMATS, *COMPRESSED, ".PARQUET"])
def test_a_file_is_the_frame(model, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    summary = write(model, path, N=5)
    frame = model.recommend_frame(N=5, user_items=DATA)
    found = read(path) if suffix != ".PARQUET" else rows_of(pa.parquet.read_table(path))
    assert as_float32(found) == as_float32(rows_of(frame))
    assert (summary.rows, summary.users, summary.cold_users) == (frame.num_rows, 30, 1)
    assert summary.seconds > 0
    assert os.listdir(tmp_path) == [path.name]


def test_parquet_has_the_types_of_the_frame(model, tmp_path):
    write(model, tmp_path / "out.parquet")
    found = pa.parquet.read_table(tmp_path / "out.parquet")
    assert found.equals(model.recommend_frame(user_items=DATA).combine_chunks())


@pytest.mark.parametrize("suffix", [*FORMATS, *COMPRESSED])
def test_parts_do_not_matter(model, tmp_path, monkeypatch, suffix):
    write(model, tmp_path / f"parts{suffix}")
    monkeypatch.setattr(answers, "ROWS", 1000)
    write(model, tmp_path / f"whole{suffix}")
    assert read(tmp_path / f"parts{suffix}") == read(tmp_path / f"whole{suffix}")


def test_parts_are_small(tmp_path, monkeypatch):
    """Neither many users nor a large N is answered at once."""
    model = IALS(4, iterations=1, random_state=0).fit(DATA, show_progress=False)
    sizes, own = [], model.recommend_flagged

    def recommend_flagged(userid, *rest, **options):
        sizes.append(len(userid))
        return own(userid, *rest, **options)

    model.recommend_flagged = recommend_flagged
    write(model, tmp_path / "out.csv", N=3)
    assert sizes == [7, 7, 7, 7, 2]
    sizes.clear()
    monkeypatch.setattr(answers, "PAIRS", 24)
    write(model, tmp_path / "out.csv", N=1000)  # there are 12 items
    assert sizes == [2] * 15


def test_users_by_their_ids_filtered_and_chosen(model, tmp_path):
    path, some = tmp_path / "out.parquet", [USERS[8], USERS[2], USERS[8]]
    write(model, path, users=some, filter_items=ITEMS[:3], N=4)
    expected = model.recommend_frame(some, 4, user_items=DATA, filter_items=ITEMS[:3])
    assert read(path) == rows_of(expected)
    write(model, path, users=some, items=ITEMS[[1, 5, 6]])
    assert {item for _, item, *_ in read(path)} <= set(ITEMS[[1, 5, 6]].tolist())
    write(model, path, users=some, filter_already_liked_items=False, N=12)
    assert len(read(path)) == 36


def test_nobody(model, tmp_path):
    summary = write(model, tmp_path / "out.parquet", users=[])
    assert (summary.rows, summary.users) == (0, 0)
    found = pa.parquet.read_table(tmp_path / "out.parquet")
    assert found.schema == model.recommend_frame(user_items=DATA).schema


def test_known_new_and_cold_users_together(model, tmp_path):
    """Stored, with a history of now, only in the data, and known nowhere."""
    later = sp.vstack([MATRIX, MATRIX[3]]).tocsr()
    data = Interactions.from_csr(later, [*USERS, "only in the data"], ITEMS)
    now = Interactions.from_csr(MATRIX[[9, 2]], [USERS[0], "now"], ITEMS)
    asked = ["nowhere", USERS[1], "now", "only in the data", USERS[0], USERS[EMPTY]]
    path = tmp_path / "out.parquet"
    summary = write(model, path, data, users=asked, histories=now, N=3)
    assert (summary.rows, summary.users, summary.cold_users) == (18, 6, 2)
    found = read(path)
    assert [user for user, *_ in found[::3]] == asked
    assert [popular for *_, popular in found[::3]] == [True, False, False, False, False, True]
    same = [EMPTY, 1, 2, 3, 9, EMPTY]  # users of the model with these histories
    ids, scores = model.recommend(same, MATRIX[same], N=3, recalculate_user=True)
    assert [item for _, item, *_ in found] == ITEMS[ids].ravel().tolist()
    np.testing.assert_array_equal([score for _, _, score, *_ in found], scores.ravel())


def test_cold_users_alone(model, tmp_path):
    path = tmp_path / "out.parquet"
    summary = write(model, path, users=["nobody", "no one"], N=2)
    assert (summary.rows, summary.users, summary.cold_users) == (4, 2, 2)
    popular = ITEMS[np.argsort(-MATRIX.getnnz(axis=0), kind="stable")[:2]].tolist()
    assert [(user, item, flag) for user, item, _, _, flag in read(path)] == [
        (user, item, True) for user in ("nobody", "no one") for item in popular
    ]


@pytest.mark.parametrize("users", [[1.0, 2.0], ["1"], [2**63], np.array([1, 2], object)])
def test_ids_of_another_type_are_not_cold(tmp_path, users):
    numbers = Interactions.from_csr(MATRIX, np.arange(30), ITEMS)
    model = IALS(4, iterations=1, random_state=0).fit(numbers, show_progress=False)
    with pytest.raises(TypeError, match="users holds ids that are no integers"):
        write(model, tmp_path / "out.csv", numbers, users=users)


def test_users_without_a_row_are_counted(model, tmp_path):
    """Only the first one has all of the items to choose from."""
    few = sp.csr_matrix(np.eye(3, 12, k=8))
    full = Interactions.from_csr(few, USERS[:3], ITEMS)
    summary = write(model, tmp_path / "out.csv", full, users=USERS[:3], items=ITEMS[8:9])
    assert (summary.rows, summary.users, summary.empty_users) == (2, 3, 1)


def test_histories_alone(model, tmp_path):
    """They say who is asked for, in another order of items; nothing else is needed."""
    order = np.arange(12)[::-1]
    now = Interactions.from_csr(MATRIX[[9, 2]][:, order], [100, 200], ITEMS[order])
    path = tmp_path / "out.parquet"
    write(model, path, None, histories=now, N=3)
    ids, _ = model.recommend([9, 2], MATRIX[[9, 2]], N=3, recalculate_user=True)
    assert [(user, item) for user, item, *_ in read(path)] == [
        *((100, item) for item in ITEMS[ids[0]]),
        *((200, item) for item in ITEMS[ids[1]]),
    ]


def test_only_users_of_the_model_need_what_they_have(model, tmp_path):
    """Of others, those in the histories are computed, and the rest is cold."""
    now, path = Interactions.from_csr(MATRIX[:1], ["new"], ITEMS), tmp_path / "out.parquet"
    summary = recommend_to_file(
        model, path, users=["new", "cold"], histories=now, show_progress=False
    )
    assert (summary.users, summary.cold_users) == (2, 1)
    with pytest.raises(TypeError, match="NoneType, not Interactions; pass what the users already"):
        recommend_to_file(model, path, users=["new", USERS[1]], histories=now)
    summary = recommend_to_file(model, path, users=["cold"], show_progress=False)
    assert (summary.users, summary.cold_users) == (1, 1)


def test_frames_take_histories(model, tmp_path):
    now, path = Interactions.from_csr(MATRIX[:2], ["new", USERS[3]], ITEMS), tmp_path / "o.parquet"
    for options in ({}, {"users": [USERS[3], USERS[1]], "user_items": DATA}):
        write(model, path, options.get("user_items"), users=options.get("users"), histories=now)
        table = model.recommend_frame(**options, histories=now)
        assert table.equals(pyarrow.parquet.read_table(path))
    with pytest.raises(KeyError, match=r"unknown user .*cold.*30 are known"):
        model.recommend_frame(["new", "cold"], histories=now)


def test_unknown_items_are_told_once(model, tmp_path):
    now = Interactions.from_csr(MATRIX[:20], np.arange(20), [*ITEMS[:11], 5])
    with pytest.warns(ParameterWarning, match="1 of 12 items in the users' .* such as 5") as told:
        write(model, tmp_path / "out.csv", None, histories=now)
    assert len(told) == 1


def test_without_ids(tmp_path):
    model = IALS(4, iterations=1, random_state=0).fit(MATRIX, show_progress=False)
    path = tmp_path / "out.jsonl"
    summary = write(model, path, Interactions.from_csr(MATRIX), users=[3, 1000], N=2)
    assert summary.cold_users == 1
    assert [user for user, *_ in read(path)] == [3, 3, 1000, 1000]


BAD = [
    (KeyError, "unknown item (in items) 8", {"items": [8]}),
    (KeyError, "unknown item (in filter_items) 'x'", {"filter_items": ["x"]}),
    (TypeError, "users holds ids that are no strings", {"users": [3]}),
    (TypeError, "users holds ids that are no strings", {"users": [USERS[0], None]}),
    (TypeError, "users holds ids that are no strings", {"users": [USERS[0], chr(0xD800)]}),
    (ValueError, "ids have 2 dimensions", {"users": [USERS]}),
    (TypeError, "histories is a csr_matrix; pass an Interactions", {"histories": MATRIX}),
    (TypeError, "NoneType, not Interactions", {"user_items": None}),
    (TypeError, "csr_matrix, not Interactions", {"user_items": MATRIX}),
    (TypeError, "no item ids", {"histories": Interactions.from_csr(MATRIX)}),
    (KeyError, "unknown user (in user_items)",
     {"user_items": Interactions.from_csr(MATRIX[:3], USERS[:3], ITEMS)}),
    (ValueError, "N=0 has to be at least 1", {"N": 0}),
    (ValueError, "the suffix says no format; end it in .csv.gz, ", {"path": "out.xlsx"}),
    (FileNotFoundError, "there is no folder", {"path": "nowhere/out.csv"}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "words", "options"), BAD)
def test_bad_arguments_leave_no_file(model, tmp_path, error, words, options):
    path, options = tmp_path / options.get("path", "out.csv"), dict(options)
    options.pop("path", None)
    with refused(error, words):
        write(model, path, **{"user_items": DATA, **options})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("suffix", "problem"),
    [(".csv", OSError), *((suffix, KeyboardInterrupt) for suffix in (*FORMATS, *COMPRESSED))],
)
def test_an_interrupt_leaves_the_old_file(tmp_path, suffix, problem):
    model = IALS(4, iterations=1, random_state=0).fit(DATA, show_progress=False)
    path, own, calls = tmp_path / f"out{suffix}", model.recommend_flagged, []
    path.write_bytes(b"old")

    def recommend_flagged(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise problem("halfway")
        return own(*arguments, **options)

    model.recommend_flagged = recommend_flagged
    with pytest.raises(problem, match="halfway"):
        write(model, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1), st.lists(st.floats(width=32), min_size=1))
def test_json_lines_are_json(texts, numbers):
    size = min(len(texts), len(numbers))
    types = {"user": pa.large_string(), "score": pa.float32()}
    columns = [pa.array(texts[:size], types["user"]), pa.array(numbers[:size], types["score"])]
    lines = bytes(json_lines(pa.record_batch(columns, schema=pa.schema(types))))
    rows = [json.loads(line) for line in lines.split(b"\n")[:-1]]
    assert [row["user"] for row in rows] == texts[:size]
    for row, number in zip(rows, numbers, strict=False):
        if np.isfinite(number):
            assert np.float32(row["score"]) == np.float32(number)
        else:
            assert row["score"] is None
