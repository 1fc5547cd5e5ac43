"""The page on speed says what the pages of results say."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_measured_number_stands_on_the_pages_that_it_cites():
    text = (DOCS / "speed.md").read_text()
    pages = re.findall(r"\]\((results/\w+\.md)\)", text)
    measured = " ".join((DOCS / page).read_text() for page in pages)
    numbers = re.findall(r"\d+\.\d+", text)
    assert len(set(pages)) == 2
    assert len(numbers) > 20
    for number in numbers:
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", measured), number


def test_modules_and_commands_are_there():
    text = (DOCS / "speed.md").read_text()
    paths = re.findall(r"`((?:benchmarks|cpp)/[\w/.]+)`", text)
    assert paths
    for path in paths:
        assert (DOCS.parent / path).is_file()
