"""Quotes in text files: of several lines, and not closed."""

import pytest

from safecf import Interactions


def lines(count):
    return [f"u{at % 7},i{at}" for at in range(count)]


@pytest.mark.parametrize("count", [1, 100, 40_000])
def test_a_quote_that_is_not_closed_is_an_error(tmp_path, count):
    rows = lines(count)
    rows[count // 2] = rows[count // 2].replace(",", ',"')
    file = tmp_path / "log.csv"
    file.write_text("user,item\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=rf"log.csv: line {count // 2 + 2}: a quote is opened and"):
        Interactions.from_csv(file, user="user", item="item")


def test_an_id_of_several_lines_at_the_end_is_read(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text('user,item\nu1,i1\nu2,"two\nlines"\n')
    found = Interactions.from_csv(file, user="user", item="item")
    assert sorted(found.item_ids.tolist()) == ["i1", "two\nlines"]
