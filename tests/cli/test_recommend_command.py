"""`safecf recommend`, as it is typed."""

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
from safecf import EASE, IALS
from safecf.cli.command_options import DataOptions
from safecf.cli.id_lists import read_ids
from safecf.cli.output_files import raise_all

COLUMNS = ("--user", "visitor", "--item", "page")


def answers(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def test_all_users_get_what_the_library_answers(run, clicks, model, data):
    code, out, err = run(
        "recommend", "m.safetensors", clicks, *COLUMNS, "-q", "-o", "new/r.parquet"
    )
    assert (code, err) == (0, "")
    assert answers("new/r.parquet") == model.recommend_frame(user_items=data).to_pylist()
    assert "3,000 recommendations for 300 users" in out
    assert "written: new/r.parquet (" in out


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.csv.gz", "r.jsonl.gz"])
def test_the_suffix_is_the_format(run, clicks, model, data, name):
    given = ("--users", "3", "--json", "-q")
    code, out, _ = run("recommend", "m.safetensors", clicks, *COLUMNS, *given, "-o", name)
    assert code == 0
    assert json.loads(out)["rows"] == 10
    with pa.input_stream(name, compression="detect") as file:
        content = file.read()
    rows = model.recommend_frame([3], user_items=data).to_pylist()
    if ".jsonl" in name:
        items = [json.loads(line)["item"] for line in content.splitlines()]
    else:
        items = pyarrow.csv.read_csv(pa.BufferReader(content))["item"].to_pylist()
    assert items == [row["item"] for row in rows]


def test_a_few_users_are_shown(run, clicks, model, data):
    Path("ids.txt").write_text("4\n5\n")
    some = ("--users", "3", "--users", "ids.txt", "-n", "2")
    code, out, err = run("recommend", "m.safetensors", clicks, *COLUMNS, *some)
    assert (code, err) == (0, "")
    rows = model.recommend_frame([3, 4, 5], 2, user_items=data).to_pylist()
    shown = [line for line in out.splitlines() if line.startswith("│")]
    assert len(shown) == len(rows) == 6
    for line, row in zip(shown, rows, strict=True):
        assert f"│ {row['item']} " in line
        assert f"{row['score']:.4f} │" in line
    code, out, _ = run("recommend", "m.safetensors", clicks, *COLUMNS, *some, "--json")
    assert json.loads(out) == rows


def test_a_list_without_a_header_has_its_ids_in_the_first_column(run, clicks, model, tmp_path):
    pairs = pyarrow.parquet.read_table(clicks)
    columns = (pairs[name].to_pylist() for name in ("visitor", "page"))
    lines = "".join(f"{user},{item}\n" for user, item in zip(*columns, strict=True))
    Path("bare.csv").write_text(lines)
    Path("users.csv").write_text("4\n5\n")
    given = ("bare.csv", "--no-header", "--user", "0", "--item", "1", "--users", "users.csv")
    code, out, _ = run("recommend", "m.safetensors", *given, "-n", "1", "--json")
    assert (code, [row["user"] for row in json.loads(out)]) == (0, [4, 5])


def test_unknown_users_get_popular_items(run, clicks, model):
    code, out, err = run(
        "recommend", "m.safetensors", clicks, *COLUMNS, "--users", "3", "--users", "9999", "-n", "2"
    )
    assert (code, err) == (0, "")
    assert "9999 (popular)" in out
    assert "3 (popular)" not in out


def test_only_unknown_users_get_popular_items_too(run, clicks, model):
    Path("now.csv").write_text("visitor,page\n3,page 1\n")
    for given in ((clicks, *COLUMNS), ("--seen",), (), ("--histories", "now.csv", *COLUMNS)):
        code, out, err = run("recommend", "m.safetensors", *given, "--users", "9999", "--json")
        assert (code, err) == (0, "")
        assert [(row["user"], row["popular"]) for row in json.loads(out)] == [(9999, True)] * 10


def test_users_for_whom_nothing_is_left_are_counted(run, clicks, model, data):
    item = next(each for each in data.item_ids if 0 < _owners(data, each).size < data.num_users)
    has, lacks = _owners(data, item)[0], np.setdiff1d(data.user_ids, _owners(data, item))[0]
    common = ("recommend", "m.safetensors", clicks, *COLUMNS, "--items", item)
    given = (*common, "--users", has, "--users", lacks)
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    assert "no item is left for 1 of 2 users" in out
    code, out, err = run(*given, "-o", "r.csv", "-q")
    assert "1 users have no row, as no item is left for them" in out
    code, out, err = run(*given, "-o", "r.csv", "-q", "--json")
    assert json.loads(out)["empty_users"] == 1


def _owners(data, item):
    column = int(np.flatnonzero(data.item_ids == item)[0])
    return data.user_ids[data.to_csr()[:, column].nonzero()[0]]


def test_an_interrupted_command_goes_on(run, clicks, model, data, monkeypatch):
    monkeypatch.setattr("safecf.models.answers.ROWS", 100)
    own, started = IALS.recommend_flagged, []

    def interrupted(self, userid, *rest, **options):
        started.append(len(userid))
        if len(started) == 2:
            raise KeyboardInterrupt
        return own(self, userid, *rest, **options)

    monkeypatch.setattr(IALS, "recommend_flagged", interrupted)
    given = ("recommend", "m.safetensors", clicks, *COLUMNS, "-q", "-o", "r.parquet", "--resume")
    code, out, err = run(*given)
    assert (code, out) == (130, "")
    assert err == "safecf: interrupted; to go on, start the same command again\n"
    assert run(*given)[0] == 0
    assert started == [100, 100, 100, 100]  # the second one twice
    assert answers("r.parquet") == model.recommend_frame(user_items=data).to_pylist()
    assert not list(Path().glob(".r.parquet*"))


def test_a_full_disk_is_told_once(run, clicks, model, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for more in ((), ("--resume",)):
        code, out, err = run("recommend", "m", clicks, *COLUMNS, "-q", "-o", "r.csv", *more)
        assert (code, out) == (2, "")
        assert err.endswith(
            "cannot write the file: No space left on device; what was there before is untouched\n"
        )
        assert err.count("cannot write") == 1
        assert "Errno" not in err


def test_files_that_fail_alike_are_told_together():
    problems = [OSError(28, "No space left", name) for name in ("a", "b")]
    with pytest.raises(OSError, match=r"^a, b: No space left; c is wrong$"):
        raise_all([*problems, ValueError("c is wrong")])


def test_all_users_of_a_small_model_are_shown(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = safecf.Interactions.from_frame({"user": ["é\x9b"], "item": ["ü"]})
    IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    code, out, err = run("recommend", "m", "--seen")
    assert (code, err) == (0, "")
    assert "│ é\\x9b" in out
    code, out, err = run("recommend", "m", "--seen", "--json")
    assert (code, err) == (0, "")
    assert '"user": "é\\u009b", "item": "ü"' in out
    assert json.loads(out)[0]["user"] == "é\x9b"


def test_json_is_json_in_every_encoding(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = safecf.Interactions.from_frame({"user": ["é"], "item": ["\U0001f600"]})
    IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    told = subprocess.run(
        [sys.executable, "-m", "safecf", "recommend", "m", "--seen", "--json"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    (row,) = json.loads(told.stdout.decode("ascii"))
    assert (row["user"], row["item"]) == ("é", "\U0001f600")


def test_blocked_and_allowed_items(run, clicks, model):
    common = ("recommend", "m.safetensors", clicks, *COLUMNS, "--users", "3", "--json")
    first = [row["item"] for row in json.loads(run(*common)[1])]
    pyarrow.parquet.write_table(pa.table({"page": first[:5]}), "blocked.parquet")
    code, out, err = run(*common, "--filter-items", "blocked.parquet", "--filter-items", "nothing")
    assert code == 0
    assert (
        "1 of 6 ids in --filter-items are unknown to the model and left out, such as 'nothing'"
        in err
    )
    assert not {row["item"] for row in json.loads(out)} & {*first[:5]}
    Path("allowed.csv").write_text("page\n" + "".join(f"{item}\n" for item in first[:5]))
    code, out, err = run(*common, "--items", "allowed.csv")
    assert (code, err) == (0, "")
    assert [row["item"] for row in json.loads(out)] == first[:5]


def test_histories_are_folded_in(run, clicks, model):
    rows = "".join(f"new,page {item}\n" for item in (1, 2, 3))
    Path("today.csv").write_text(f"visitor,page\n{rows}")
    given = ("--histories", "today.csv", *COLUMNS)
    data = safecf.Interactions.from_csv("today.csv", user="visitor", item="page")
    expected = model.recommend_frame(user_items=data, recalculate_user=True).to_pylist()
    code, out, err = run("recommend", "m.safetensors", *given, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == expected


def test_seen_items_may_be_wanted(run, clicks, model, data):
    expected = model.recommend_frame([3], filter_already_liked_items=False).to_pylist()
    for flag in ("--seen", "--no-filter-already-liked-items"):
        code, out, err = run("recommend", "m.safetensors", "--users", "3", flag, "--json")
        assert (code, err, json.loads(out)) == (0, "", expected)


def test_models_that_store_no_users_need_the_data(run, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EASE().fit(data, show_progress=False).save("ease.safetensors")
    code, out, err = run("recommend", "ease.safetensors", "--users", "3", "--seen")
    assert (code, out) == (2, "")
    assert err == "safecf: EASE computes users from what they have; add the data, or --histories\n"
    code, out, err = run("similar", "ease.safetensors", "3", "--users")
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.safetensors"], "all users are too many to show; give some by --users, or a file"),
        (["m.safetensors", "--users", "3"], "what the users have already is not given; add the"),
        (["m.safetensors", "--users", "x", "--seen"], "--users 'x' is no file, and no id"),
        (["m.safetensors", "--users", "3", "--resume"], "--resume is for a file; name it by -o"),
        (["m.safetensors", "{data}", "-o", "r.txt"], "r.txt: the suffix says no format; end it in"),
        (["m.safetensors", "{data}", "-o", "{data}"], "is an input of this command"),
        (["no.safetensors", "{data}", "-o", "r.csv"], "no.safetensors"),
        (["{data}", "{data}", "-o", "r.csv"], "clicks.parquet: it is damaged, or no safetensors"),
        (["m.safetensors", "{data}", "-o", "r.csv", "-n", "0"], "--N 0 has to be at least 1"),
        (["m.safetensors", "no.csv", "-o", "r.csv"], "no.csv: there is no such file"),
        (["m.safetensors", "--seen", "--users", "no.txt"], "--users no.txt: there is no such file"),
        (
            ["m.safetensors", "{data}", "--users", "3", "--filter-items", "no.csv"],
            "--filter-items no.csv: there is no such file",
        ),
        (
            ["m.safetensors", "{data}", "--users", "3", "--filter-items", "a", "--items", "b"],
            "--filter-items and --items exclude each other",
        ),
        (
            ["m.safetensors", "{data}", "--users", "3", "--items", "nothing"],
            "unknown item (in --items) 'nothing'",
        ),
        (["m.safetensors", "--histories", "no.csv"], "no.csv: there is no such file"),
        (
            ["m.safetensors", "--histories", "m.csv", "--users", "9999", "--users", "4"],
            "user 4 of --users is not in --histories; add the data with what the others have, "
            "or --seen",
        ),
        (["m.safetensors", "--histories", "m.safetensors"], "is a model, not data"),
    ],
)
def test_bad_input_is_one_line(run, clicks, model, tmp_path, arguments, message):
    Path("m.csv").write_text("visitor,page\n3,page 1\n")
    before = sorted(tmp_path.iterdir())
    given = [each.format(data=clicks) for each in arguments]
    code, out, err = run("recommend", *given, *COLUMNS, "-q")
    assert (code, out) == (2, "")
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(tmp_path.iterdir()) == before


def test_lists_of_ids(tmp_path, model):
    Path("empty.txt").write_text("\n\n")
    options = DataOptions([], item="page")
    with pytest.raises(ValueError, match="--filter-items: there are no ids; give ids, or files"):
        read_ids("--filter-items", ["empty.txt"], "item", options, model.item_ids)
    Path("latin.txt").write_bytes(b"\xe9t\xe9\n")
    with pytest.raises(ValueError, match=r"latin.txt: it is not written in UTF-8 \(byte 0\)"):
        read_ids("--filter-items", ["latin.txt"], "item", options, model.item_ids)
    Path("numbers.txt").write_text("7\r\n 8\n7")
    assert read_ids("--users", ["numbers.txt"], "user", options, model.user_ids).tolist() == [7, 8]
    assert read_ids("--users", ["5"], "user", options, None).tolist() == [5]
