"""`safecf recommend`, `similar`, `explain` and `export`, as they are typed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import safecf
from safecf import IALS, Interactions
from tests.cli.conftest import COLUMNS


def answers(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def shown(out):
    return [line for line in out.splitlines() if line.startswith("│")]


def test_all_users_get_what_the_library_answers(done, clicks, model, data):
    out = done("recommend", "m.safetensors", clicks, *COLUMNS, "-q", "-o", "new/r.parquet")
    assert answers("new/r.parquet") == model.recommend_frame(user_items=data).to_pylist()
    assert "3,000 recommendations for 300 users" in out
    assert "written: new/r.parquet (" in out


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl.gz"])
def test_the_suffix_is_the_format(done, clicks, model, data, name):
    given = ("--users", "3", "--json", "-q", "-o", name)
    assert json.loads(done("recommend", "m", clicks, *COLUMNS, *given))["rows"] == 10
    with pa.input_stream(name, compression="detect") as file:
        content = file.read()
    if ".jsonl" in name:
        items = [json.loads(line)["item"] for line in content.splitlines()]
    else:
        items = pyarrow.csv.read_csv(pa.BufferReader(content))["item"].to_pylist()
    assert items == model.recommend_frame([3], user_items=data)["item"].to_pylist()


def test_a_few_users_are_shown(done, clicks, model, data):
    Path("ids.txt").write_text("4\r\n 5\n4")
    some = ("--users", "3", "--users", "ids.txt", "-n", "2")
    rows = model.recommend_frame([3, 4, 5], 2, user_items=data).to_pylist()
    lines = shown(done("recommend", "m", clicks, *COLUMNS, *some))
    assert len(lines) == len(rows) == 6
    for line, row in zip(lines, rows, strict=True):
        assert f"│ {row['item']} " in line
        assert f"{row['score']:.4f} │" in line
    assert json.loads(done("recommend", "m", clicks, *COLUMNS, *some, "--json")) == rows


def test_a_list_without_a_header_has_its_ids_in_the_first_column(done, clicks, model):
    pairs = pyarrow.parquet.read_table(clicks)
    columns = (pairs[name].to_pylist() for name in ("visitor", "page"))
    lines = "".join(f"{user},{item}\n" for user, item in zip(*columns, strict=True))
    Path("bare.csv").write_text(lines)
    Path("users.csv").write_text("4\n5\n")
    given = ("bare.csv", "--no-header", "--user", "0", "--item", "1", "--users", "users.csv")
    rows = json.loads(done("recommend", "m", *given, "-n", "1", "--json"))
    assert [row["user"] for row in rows] == [4, 5]


def test_unknown_users_get_popular_items(done, clicks, model):
    some = ("--users", "3", "--users", "9999", "-n", "2")
    out = done("recommend", "m", clicks, *COLUMNS, *some)
    assert "9999 (popular)" in out
    assert "3 (popular)" not in out
    Path("now.csv").write_text("visitor,page\n3,page 1\n")
    for given in ((clicks, *COLUMNS), ("--seen",), (), ("--histories", "now.csv", *COLUMNS)):
        rows = json.loads(done("recommend", "m", *given, "--users", "9999", "--json"))
        assert [(row["user"], row["popular"]) for row in rows] == [(9999, True)] * 10


def test_users_for_whom_nothing_is_left_are_counted(done, clicks, model, data):
    table = data.to_csr().toarray() > 0
    item = int(np.flatnonzero((table.sum(axis=0) > 0) & (table.sum(axis=0) < len(table)))[0])
    has, lacks = (data.user_ids[table[:, item] == owns][0] for owns in (True, False))
    given = ("recommend", "m", clicks, *COLUMNS, "--items", data.item_ids[item])
    given += ("--users", has, "--users", lacks)
    assert "no item is left for 1 of 2 users" in done(*given)
    said = "1 users have no row, as no item is left for them"
    assert said in done(*given, "-o", "r.csv", "-q")
    assert json.loads(done(*given, "-o", "r.csv", "-q", "--json"))["empty_users"] == 1


def test_all_users_of_a_small_model_are_shown_in_every_encoding(done):
    data = Interactions.from_frame({"user": ["é\x9b"], "item": ["\U0001f600"]})
    IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    assert "│ é\\x9b" in done("recommend", "m", "--seen")
    out = done("recommend", "m", "--seen", "--json")
    assert '"user": "é\\u009b", "item": "\U0001f600"' in out
    command = [sys.executable, "-m", "safecf", "recommend", "m", "--seen", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    told = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert json.loads(told.stdout.decode("ascii")) == json.loads(out)


def test_blocked_and_allowed_items(run, done, clicks, model):
    common = ("recommend", "m", clicks, *COLUMNS, "--users", "3", "--json")
    first = [row["item"] for row in json.loads(done(*common))]
    pyarrow.parquet.write_table(pa.table({"page": first[:5]}), "blocked.parquet")
    code, out, err = run(*common, "--filter-items", "blocked.parquet", "--filter-items", "nothing")
    said = "1 of 6 ids in --filter-items are unknown to the model and left out, such as 'nothing'"
    assert (code, said in err) == (0, True)
    assert not {row["item"] for row in json.loads(out)} & {*first[:5]}
    Path("allowed.csv").write_text("page\n" + "".join(f"{item}\n" for item in first[:5]))
    rows = json.loads(done(*common, "--items", "allowed.csv"))
    assert [row["item"] for row in rows] == first[:5]


def test_seen_items_may_be_wanted(done, model):
    expected = model.recommend_frame([3], filter_already_liked_items=False).to_pylist()
    for flag in ("--seen", "--no-filter-already-liked-items"):
        out = done("recommend", "m", "--users", "3", flag, "--device", "cpu", "--json")
        assert json.loads(out) == expected


def test_a_full_disk_is_told_once(run, clicks, model, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for more in ((), ("--resume",)):
        code, out, err = run("recommend", "m", clicks, *COLUMNS, "-q", "-o", "r.csv", *more)
        assert (code, out, err.count("cannot write")) == (2, "", 1)
        said = "No space left on device; what was there before is untouched\n"
        assert err.endswith(f"cannot write the file: {said}")
        assert "Errno" not in err


# Similar items and users, explanations


def test_similar_items_and_users(done, model):
    items = [str(each) for each in model.item_ids[:2]]
    out = done("similar", "m", *items, "-n", "3", "--json")
    assert json.loads(out) == model.similar_items_frame(items, 3).to_pylist()
    out = done("similar", "m", *items, "-n", "3")
    assert all(f"│ {item} " in out for item in items)
    assert "written: new/s.jsonl.gz" in done("similar", "m", "7", "--users", "-o", "new/s.jsonl.gz")
    with pa.input_stream("new/s.jsonl.gz", compression="detect") as file:
        found = [json.loads(line) for line in file.read().splitlines()]
    expected = model.similar_users_frame([7]).column("similar").to_pylist()
    assert [row["similar"] for row in found] == expected


@pytest.mark.parametrize("side", ["item", "user"])
def test_what_to_leave_out_and_to_choose_from(done, model, side):
    ids = getattr(model, f"{side}_ids")
    ask = getattr(model, f"similar_{side}s_frame")
    some, flags = ids[1:9].tolist(), ("--users",) * (side == "user")
    Path("some.txt").write_text("".join(f"{each}\n" for each in some))
    given = ("similar", "m", ids[0], *flags, "--json", "-n", "3")
    blocked = (f"--filter-{side}s", some[0], f"--filter-{side}s", "some.txt")
    expected = ask(ids[0], 3, **{f"filter_{side}s": some}).to_pylist()
    assert json.loads(done(*given, *blocked)) == expected
    expected = ask(ids[0], 3, among=some).to_pylist()
    assert json.loads(done(*given, "--among", "some.txt")) == expected


def test_ids_with_a_dash_go_behind_two(done):
    data = Interactions.from_frame({"user": [-5, -5, 6], "item": [-1, 2, 2]})
    IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    assert json.loads(done("similar", "m", "--json", "--", "-1"))[0]["item"] == -1


def test_explanations(done, clicks, model, data):
    given = ("explain", "m", clicks, *COLUMNS, 3, "page 1", "-n", "4")
    expected = model.explain_frame(3, "page 1", 4, user_items=data).to_pylist()
    assert json.loads(done(*given, "--json")) == expected
    lines = shown(done(*given))
    for row in expected:
        wanted = row["item"], f"{row['contribution']:.4f}"
        assert any(all(each in line for each in wanted) for line in lines)
    assert done(*given, "-o", "new/why.parquet") == "written: new/why.parquet\n"
    assert answers("new/why.parquet") == expected


# Export


def test_vectors_and_ids_are_written(run, model):
    code, out, err = run("export", "m", "-o", "new/items.npz")
    assert code == 0
    bars = [line.split() for line in err.splitlines()]
    assert [bar[0] for bar in bars] == ["index", "check"]
    assert "80, each 4 numbers" in out
    assert "fast enough, no index is needed." in " ".join(out.split())
    assert "written: new/items.npz (" in out
    assert "written: new/items.npz.json" in out
    with np.load("new/items.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["vectors"], model.item_factors)


def test_an_index_in_numbers_for_machines(done, model):
    pytest.importorskip("usearch")
    given = ("export", "m", "-o", "items.usearch", "--queries", 30, "-q")
    record = json.loads(done(*given, "--json"))
    assert (record["items"], record["check"]["queries"]) == (80, 30)
    assert set(record["check"]["recall"]) == {"10", "80"}
    assert "no index is needed" in record["verdict"]
    assert "recall" in done(*given)
    assert safecf.load("m").shape == model.shape
