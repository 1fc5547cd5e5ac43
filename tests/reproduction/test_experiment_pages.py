"""Pages: numbers come out as they went in, and every file says how it was made."""

import csv
import io
from importlib.util import find_spec

import pytest

import safecf
from reproduction import page
from reproduction.page import Page, comma_separated, origin, table, write

ROWS = [{"model": "iALS", "tail": 0.3, "value": 1 / 3}, {"model": "a, b", "tail": 1, "value": 0.5}]


def test_numbers_have_four_digits_in_tables():
    lines = table(["model", "R@20"], [["iALS", 0.34501], ["EASE", None]]).splitlines()
    assert lines == ["| model | R@20 |", "| --- | --- |", "| iALS | 0.3450 |", "| EASE |  |"]


def test_csv_has_all_digits():
    read = list(csv.DictReader(io.StringIO(comma_separated(ROWS))))
    assert [row["model"] for row in read] == ["iALS", "a, b"]
    assert float(read[0]["value"]) == 1 / 3
    with pytest.raises(ValueError, match="contains fields not in"):
        comma_separated([*ROWS, {"another": 1}])


def test_a_page_with_everything(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")

    def draw():
        from reproduction.figures import look, panels  # noqa: PLC0415

        figure, (axes,) = panels(1)
        axes.plot([0, 1], [0, 1], label="SAFER2", **look(0)._asdict())
        return figure

    shown = Page(["What was done."], ROWS, draw, "A line", {"more.toml": "x = 1\n"})
    made = origin("safecf reproduce something")
    written = write(tmp_path / "new", "name", "A title", made, shown)
    assert {file.name for file in written} == {
        *("name.md", "name.csv", "name.svg", "name.png", "more.toml")
    }
    text = (tmp_path / "new" / "name.md").read_text()
    assert text.startswith("# A title\n\n`safecf reproduce something` with safecf")
    for part in (safecf.__version__, " cores, ", "What was done.", "![A line](name.svg)"):
        assert part in text
    first = [(tmp_path / "new" / f"name.{kind}").read_bytes() for kind in ("svg", "png")]
    assert first[1].startswith(b"\x89PNG")
    write(tmp_path / "new", "name", "A title", made, shown)
    again = [(tmp_path / "new" / f"name.{kind}").read_bytes() for kind in ("svg", "png")]
    assert first == again  # no dates


def test_looks_differ_in_colour_marker_and_dashes():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from reproduction.figures import look  # noqa: PLC0415

    looks = [look(place) for place in range(7)]
    for property_ in zip(*looks, strict=True):
        assert len(set(map(str, property_))) == len(looks)


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(
        page, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name)
    )
    with pytest.raises(ImportError, match=r"safecf\[plots\]"):
        write(tmp_path, "name", "A title", "made", Page([], figure=lambda: None))


def test_pages_go_to_the_docs_of_a_checkout(monkeypatch, tmp_path):
    monkeypatch.setattr(page.in_checkout, "__defaults__", (tmp_path,))
    assert page.results_folder() == page.Path()
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    assert page.results_folder() == page.ROOT / "docs" / "results"
    assert page.commit(tmp_path) == "unknown-dirty" or "unknown" in page.commit(tmp_path)


def test_error_bars_are_never_negative():
    from reproduction.figures import arms  # noqa: PLC0415

    assert arms([2.0, 2.0], [1.5, 2.5], [1.0, 3.0]).tolist() == [[0.5, 0.0], [0.0, 1.0]]
