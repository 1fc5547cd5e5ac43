"""Pages: their numbers, figures and origins."""

import csv
import io
import subprocess
from importlib.util import find_spec

import pytest

import safecf
from reproduction import page
from reproduction.page import Page, csv_text, origin_text, table, write

ROWS = [{"model": "iALS", "tail": 0.3, "value": 1 / 3}, {"model": "a, b", "tail": 1, "value": 0.5}]


def test_numbers_have_four_digits_in_tables():
    lines = table(["model", "R@20"], [["iALS", 0.34501], ["EASE", None]]).splitlines()
    assert lines == ["| model | R@20 |", "| --- | --- |", "| iALS | 0.3450 |", "| EASE |  |"]


def test_csv_has_all_digits():
    read = list(csv.DictReader(io.StringIO(csv_text(ROWS))))
    assert [row["model"] for row in read] == ["iALS", "a, b"]
    assert float(read[0]["value"]) == 1 / 3
    with pytest.raises(ValueError, match="contains fields not in"):
        csv_text([*ROWS, {"another": 1}])


def test_a_page_with_everything(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")

    def draw():
        from reproduction.figures import line_style, panels  # noqa: PLC0415

        figure, (axes,) = panels(1)
        axes.plot([0, 1], [0, 1], label="SAFER2", **line_style(0)._asdict())
        return figure

    shown = Page(["What was done."], ROWS, draw, "A line")
    origin = origin_text("python -m reproduction something")
    written = write(tmp_path / "new", "name", "A title", origin, shown)
    assert {file.name for file in written} == {"name.md", "name.csv", "name.svg"}
    text = (tmp_path / "new" / "name.md").read_text()
    assert text.startswith("# A title\n\n`python -m reproduction something` with safecf")
    for part in (safecf.__version__, " cores, ", "What was done.", "![A line](name.svg)"):
        assert part in text
    first = (tmp_path / "new" / "name.svg").read_bytes()
    assert b"<svg" in first
    write(tmp_path / "new", "name", "A title", origin, shown)
    assert (tmp_path / "new" / "name.svg").read_bytes() == first  # no dates


def test_styles_differ_in_colour_marker_and_dashes():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from reproduction.figures import line_style  # noqa: PLC0415

    styles = [line_style(place) for place in range(7)]
    for property_ in zip(*styles, strict=True):
        assert len(set(map(str, property_))) == len(styles)


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(
        page, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name)
    )
    with pytest.raises(ImportError, match=r"safecf\[plots\]"):
        write(tmp_path, "name", "A title", "made", Page([], figure=lambda: None))


def test_pages_go_to_the_docs_of_the_checkout():
    assert (page.ROOT / "pyproject.toml").is_file()
    assert page.RESULTS.parent == page.ROOT / "docs"


def test_a_copy_without_history_is_told_its_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("SAFECF_COMMIT", "abc1234")
    assert page.commit(tmp_path) == "abc1234"


def test_commits_are_marked_if_files_other_than_results_changed(tmp_path):
    assert page.commit(tmp_path) == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    clean = page.commit(tmp_path)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "new.md").write_text("")
    assert page.commit(tmp_path) == clean
    (tmp_path / "file").write_text("")
    assert page.commit(tmp_path) == f"{clean}-dirty"


def test_error_bars_are_never_negative():
    from reproduction.figures import error_bars  # noqa: PLC0415

    assert error_bars([2.0, 2.0], [1.5, 2.5], [1.0, 3.0]).tolist() == [[0.5, 0.0], [0.0, 1.0]]
