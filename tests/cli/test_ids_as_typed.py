"""Ids that look like numbers: typed on the command line, and in files of every kind."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import safecf
from safecf import datasets

LARGE = 2**53 + 1  # not a float


def text_of(number):
    """Return "000", "001" and so on, but "42" for 42."""
    return "42" if number == 42 else f"{number:03}"


KINDS = {
    "strings in Parquet": ("log.parquet", text_of),
    "texts of integers in Parquet": ("log.parquet", str),
    "strings in text": ("log.csv", text_of),
    "large integers in text": ("log.csv", lambda number: LARGE + 2 * number),
}


def write(name, table):
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(table, name)
    else:
        pyarrow.parquet.write_table(table, name)


@pytest.mark.parametrize("kind", KINDS)
def test_typed_ids_are_found(run, kind):
    name, make = KINDS[kind]
    pairs = datasets.synthetic(60, 50, 1200, tastes=2).matrix.tocoo()
    users, items = ([*map(make, codes.tolist())] for codes in (pairs.row, pairs.col))
    write(name, pa.table({"user": users, "item": items}))

    def done(*arguments):
        code, out, err = run(*arguments)
        assert (code, err) == (0, ""), arguments
        return json.loads(out)

    done("fit", name, "-m", "ials:factors=4,iterations=3", "-o", "m", "-q", "--json")
    model, data = safecf.load("m"), datasets.read(name).interactions()
    assert {*model.user_ids.tolist()} == {*users}
    assert {*model.item_ids.tolist()} == {*items}

    seven, answer = make(7), ("recommend", "m", name, "--json", "-n", "3")
    expected = model.recommend_frame([seven], 3, user_items=data).to_pylist()
    assert done(*answer, "--users", seven) == expected

    Path("users.txt").write_text(f"{seven}\n")
    write("users.parquet", pa.table({"user": [seven]}))
    write("users.csv", pa.table({"user": [seven]}))
    for file in ("users.txt", "users.parquet", "users.csv"):
        assert done(*answer, "--users", file) == expected

    best = expected[0]["item"]
    write("block.parquet", pa.table({"item": [best]}))
    for block in (best, "block.parquet"):
        found = done(*answer, "--users", seven, "--filter-items", block)
        assert [row["item"] for row in found[:2]] == [row["item"] for row in expected[1:]]

    similar = model.similar_items_frame(best, 3).to_pylist()
    assert done("similar", "m", best, "-n", "3", "--json") == similar
    reasons = model.explain_frame(seven, best, 3, user_items=data).to_pylist()
    assert done("explain", "m", name, seven, best, "-n", "3", "--json") == reasons

    history = [row["item"] for row in reasons]
    now = {"user": [make(3)] * 3, "item": history}
    given = safecf.Interactions.from_frame(now)
    folded = model.recommend_frame(user_items=given, recalculate_user=True, N=3).to_pylist()
    for file in ("now.parquet", "now.csv"):
        write(file, pa.table(now))
        assert done("recommend", "m", "--histories", file, "--json", "-n", "3") == folded


@pytest.fixture
def numbers():
    """Return a model whose ids are integers."""
    log = datasets.synthetic(60, 50, 1200, tastes=2).matrix
    model = safecf.IALS(4, iterations=2, random_state=0).fit(log, show_progress=False)
    model.save("m")
    return model


def test_a_known_id_is_no_file(run, numbers):
    Path("7").write_text("3\n")
    given = ("recommend", "m", "--seen", "-n", "1", "--json")
    for text, user in {"7": 7, "./7": 3}.items():
        code, out, err = run(*given, "--users", text)
        assert (code, err, json.loads(out)[0]["user"]) == (0, "", user)
        assert json.loads(run("similar", "m", text, "--json")[1])[0]["item"] == user
    bob = safecf.Interactions.from_frame({"user": ["bob", "eve"], "item": ["x", "y"]})
    safecf.IALS(2, iterations=2, random_state=0).fit(bob, show_progress=False).save("names")
    Path("bob").write_text("eve\n")
    for text, user in {"bob": "bob", "./bob": "eve"}.items():
        code, out, err = run("recommend", "names", *given[2:], "--users", text)
        assert (code, err, json.loads(out)[0]["user"]) == (0, "", user)


def test_long_ids_are_no_files(run):
    long = "a" * 1000
    data = safecf.Interactions.from_frame({"user": [long, "b"], "item": [long, "c"]})
    safecf.IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    for text in (long, "b" * 300):
        code, out, err = run("recommend", "m", "--seen", "--users", text, "--json")
        assert (code, err, json.loads(out)[0]["user"]) == (0, "", text)
    assert run("similar", "m", long, "--json", "-n", "1")[0] == 0
    code, _, err = run("similar", "m", "b" * 300)
    assert code == 2
    assert "unknown item 'bbb" in err


def test_a_list_says_which_column_it_lacks(run, numbers):
    pyarrow.parquet.write_table(pa.table({"visitor": [1], "page": [2]}), "some.parquet")
    code, out, err = run("recommend", "m", "--seen", "--users", "some.parquet", "--user", "reader")
    assert (code, out) == (2, "")
    assert err == (
        "safecf: --users some.parquet: there is no column 'user' for the user; it has 'visitor', "
        "'page'; call the column of the ids 'user', or write one id per line into a .txt file\n"
    )


def test_a_list_may_be_what_another_command_wrote(run, numbers):
    """Its columns are user and item, whatever those of the data are."""
    given = ("recommend", "m", "--seen", "--user", "reader", "--item", "book")
    assert run(*given, "--users", "7", "-o", "best.parquet")[0] == 0
    code, out, err = run(*given, "--users", "best.parquet", "--json")
    assert (code, err) == (0, "")
    assert {row["user"] for row in json.loads(out)} == {7}
