"""Ids that look like numbers: typed on the command line, and in files of every kind."""

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
def test_typed_ids_are_found(read, kind):
    name, make = KINDS[kind]
    pairs = datasets.synthetic(60, 50, 1200, tastes=2).matrix.tocoo()
    users, items = ([*map(make, codes.tolist())] for codes in (pairs.row, pairs.col))
    write(name, pa.table({"user": users, "item": items}))

    read("fit", name, "-m", "ials:factors=4,iterations=3", "-o", "m", "-q")
    model, data = safecf.load("m"), datasets.read(name).interactions()
    assert {*model.user_ids.tolist()} == {*users}
    assert {*model.item_ids.tolist()} == {*items}

    seven, answer = make(7), ("recommend", "m", name, "-n", "3")
    expected = model.recommend_frame([seven], 3, user_items=data).to_pylist()
    assert read(*answer, "--users", seven) == expected

    Path("users.txt").write_text(f"{seven}\n")
    write("users.parquet", pa.table({"user": [seven]}))
    write("users.csv", pa.table({"user": [seven]}))
    for file in ("users.txt", "users.parquet", "users.csv"):
        assert read(*answer, "--users", file) == expected

    best = expected[0]["item"]
    write("block.parquet", pa.table({"item": [best]}))
    for block in (best, "block.parquet"):
        found = read(*answer, "--users", seven, "--filter-items", block)
        assert [row["item"] for row in found[:2]] == [row["item"] for row in expected[1:]]

    similar = model.similar_items_frame(best, 3).to_pylist()
    assert read("similar", "m", best, "-n", "3") == similar
    reasons = model.explain_frame(seven, best, 3, user_items=data).to_pylist()
    assert read("explain", "m", name, seven, best, "-n", "3") == reasons

    history = [row["item"] for row in reasons]
    now = {"user": [make(3)] * 3, "item": history}
    given = safecf.Interactions.from_frame(now)
    folded = model.recommend_frame(user_items=given, recalculate_user=True, N=3).to_pylist()
    for file in ("now.parquet", "now.csv"):
        write(file, pa.table(now))
        assert read("recommend", "m", "--histories", file, "-n", "3") == folded


@pytest.fixture
def numbers():
    """Return a model whose ids are integers."""
    log = datasets.synthetic(60, 50, 1200, tastes=2).matrix
    model = safecf.IALS(4, iterations=2, random_state=0).fit(log, show_progress=False)
    model.save("m")
    return model


def test_a_known_id_is_no_file(read, numbers):
    Path("7").write_text("3\n")
    for text, user in {"7": 7, "./7": 3}.items():
        assert read("recommend", "m", "--seen", "-n", "1", "--users", text)[0]["user"] == user
        assert read("similar", "m", text)[0]["item"] == user
    bob = safecf.Interactions.from_frame({"user": ["bob", "eve"], "item": ["x", "y"]})
    safecf.IALS(2, iterations=2, random_state=0).fit(bob, show_progress=False).save("names")
    Path("bob").write_text("eve\n")
    for text, user in {"bob": "bob", "./bob": "eve"}.items():
        assert read("recommend", "names", "--seen", "--users", text)[0]["user"] == user


def test_long_ids_are_no_files(run, read):
    long = "a" * 1000
    data = safecf.Interactions.from_frame({"user": [long, "b"], "item": [long, "c"]})
    safecf.IALS(2, iterations=2, random_state=0).fit(data, show_progress=False).save("m")
    for text in (long, "b" * 300):
        assert read("recommend", "m", "--seen", "--users", text)[0]["user"] == text
    assert read("similar", "m", long, "-n", "1")
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


def test_a_list_may_be_what_another_command_wrote(done, read, numbers):
    """Its columns are user and item, whatever those of the data are."""
    given = ("recommend", "m", "--seen", "--user", "reader", "--item", "book")
    done(*given, "--users", "7", "-o", "best.parquet", "-q")
    assert {row["user"] for row in read(*given, "--users", "best.parquet")} == {7}
