"""`safecf similar` and `safecf explain`, as they are typed."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import IALS, Interactions

COLUMNS = ("--user", "visitor", "--item", "page")


def answers(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def test_what_is_asked_for_is_not_similar_to_itself(run, model):
    for ids, flags in ((model.item_ids, ()), (model.user_ids, ("--users",))):
        given = ("similar", "m.safetensors", ids[0], "-n", "1", *flags, "--json")
        code, out, err = run(*given)
        assert (code, err) == (0, "")
        (row,) = json.loads(out)
        assert row["similar"] != ids[0]
        assert row["rank"] == 1


@pytest.mark.parametrize("side", ["item", "user"])
def test_what_to_leave_out_and_to_choose_from(run, model, side):
    ids = getattr(model, f"{side}_ids")
    ask = getattr(model, f"similar_{side}s_frame")
    some, flags = ids[1:9].tolist(), ("--users",) * (side == "user")
    Path("some.txt").write_text("".join(f"{each}\n" for each in some))
    given = ("similar", "m", ids[0], *flags, "--json", "-n", "3")
    blocked = (f"--filter-{side}s", some[0], f"--filter-{side}s", "some.txt")
    expected = {(*blocked,): {f"filter_{side}s": some}, ("--among", "some.txt"): {"among": some}}
    for listed, options in expected.items():
        code, out, err = run(*given, *listed)
        assert (code, err) == (0, "")
        assert json.loads(out) == ask(ids[0], 3, **options).to_pylist()
    code, _, err = run(*given, *blocked, "--among", "some.txt")
    assert (code, err) == (
        2,
        f"safecf: --filter-{side}s and --among exclude each other; leave the "
        "former out of the latter\n",
    )
    other = "user" if side == "item" else "item"
    code, _, err = run(*given, f"--filter-{other}s", "x")
    assert code == 2
    assert f"--filter-{other}s is for similar {other}s; use --filter-{side}s" in err


def test_ids_with_a_dash_go_behind_two(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = Interactions.from_frame({"user": [-5, -5, 6], "item": [-1, 2, 2]})
    IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    code, out, err = run("similar", "m", "-1")
    assert (code, out) == (2, "")
    assert "an id that begins with a dash goes behind --, as in -- -5; see safecf similar" in err
    code, out, err = run("similar", "m", "--json", "--", "-1")
    assert (code, err, json.loads(out)[0]["item"]) == (0, "", -1)


def test_explanations(run, clicks, model, data):
    user, item = 3, "page 1"
    given = ("explain", "m.safetensors", clicks, *COLUMNS, user, item, "-n", "4")
    expected = model.explain_frame(user, item, 4, user_items=data)
    code, out, err = run(*given, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == expected.to_pylist()
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    for row in expected.to_pylist():
        assert any(
            row["item"] in line and f"{row['contribution']:.4f}" in line
            for line in out.splitlines()
        )
    code, out, err = run(*given, "-o", "new/why.parquet")
    assert (code, out, err) == (0, "written: new/why.parquet\n", "")
    assert answers("new/why.parquet") == expected.to_pylist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{data}", "3"], "missing argument"),
        (["{data}", "x", "page 1"], "the user 'x' is no id: known ids are"),
        (["{data}", "9999", "page 1"], "unknown user (in the data) 9999: 300 are known"),
        (["{data}", "3", "nothing"], "unknown item 'nothing': 80 are known"),
        (["no.csv", "3", "page 1"], "no.csv: there is no such file"),
        (["{data}", "3", "page 1", "-n", "0"], "--N 0 has to be at least 1; try --N 10"),
        (["{data}", "3", "page 1", "-o", "{data}"], "is an input of this command"),
    ],
)
def test_bad_input_of_explain_is_one_line(run, clicks, model, arguments, message):
    given = [each.format(data=clicks) for each in arguments]
    code, out, err = run("explain", "m.safetensors", *given, *COLUMNS)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_similar_items_and_users(run, model):
    items = [str(each) for each in model.item_ids[:2]]
    code, out, err = run("similar", "m.safetensors", *items, "-n", "3", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == model.similar_items_frame(items, 3).to_pylist()
    code, out, err = run("similar", "m.safetensors", *items, "-n", "3")
    assert (code, err) == (0, "")
    assert all(f"│ {item} " in out for item in items)
    code, out, _ = run("similar", "m.safetensors", "7", "--users", "-o", "new/s.jsonl.gz")
    assert (code, "written: new/s.jsonl.gz" in out) == (0, True)
    with pa.input_stream("new/s.jsonl.gz", compression="detect") as file:
        found = [json.loads(line) for line in file.read().splitlines()]
    assert [row["similar"] for row in found] == (
        model.similar_users_frame([7]).column("similar").to_pylist()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.safetensors"], "missing argument"),
        (["m.safetensors", "nothing"], "unknown item 'nothing': 80 are known, the first is"),
        (["m.safetensors", "x", "--users"], "no id: known ids are integers"),
        (["m.safetensors", "page 1", "-n", "0"], "--N 0 has to be at least 1"),
        (["m.safetensors", "page 1", "-o", "m.safetensors"], "the suffix says no format"),
    ],
)
def test_bad_input_of_similar_is_one_line(run, model, arguments, message):
    code, out, err = run("similar", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
