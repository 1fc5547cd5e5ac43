"""The page in a real browser: no errors, no requests, right numbers, all widths and colours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from safecf.evaluation import compare
from safecf.report import report
from safecf.report.text import FORMATS
from tests.report.browser import Browser, find_chromium
from tests.report.evaluations import HOSTILE, make, pair

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed")

SHOWN = """[...document.querySelectorAll("data")].filter((e) => e.checkVisibility())
    .map((e) => [e.dataset.metric ?? "", e.dataset.level ?? "", e.dataset.model, e.dataset.stat,
                 e.value, e.textContent])"""
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with Browser(folder / "profile") as found:
        yield found


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return report(pair(groups=np.arange(200) % 3), folder / "pair.html")


@pytest.fixture(autouse=True)
def desktop(browser: Browser) -> None:
    browser.resize(1200)
    browser.prefer("light")


def test_no_errors_and_no_requests(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.evaluate("document.documentElement.classList.contains('js')")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_numbers_shown_are_those_of_the_data(browser: Browser, page: Path) -> None:
    comparison = pair(groups=np.arange(200) % 3)
    browser.open(page)
    browser.evaluate(
        "(() => { const s = document.getElementById('metric'); s.value = 'ndcg@20';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    shown = browser.evaluate(SHOWN)
    metrics = {
        metric for metric, *_ in shown if "@" in metric and not metric.startswith(("co", "g"))
    }
    assert metrics == {"ndcg@20"}
    evaluations = {each.model: each for each in (comparison.baseline, *comparison.others)}
    checked = 0
    for metric, level, model, stat, value, text in shown:
        if stat == "value":
            expected = evaluations[model].tail(metric, float(level))
            assert float(value) == pytest.approx(expected)
            assert text == FORMATS["number"](expected)
            checked += 1
    assert checked >= 12


def test_script_writes_numbers_as_the_page_does(browser: Browser, page: Path) -> None:
    """At its first point every read-out says what stood there before the script touched it."""
    texts = (
        "[...document.querySelectorAll('figure[data-chart] .readout')].map((e) => e.textContent)"
    )
    browser.open(page)
    before = browser.evaluate(texts)
    browser.evaluate(
        "document.querySelectorAll('figure[data-chart] .drawing')"
        ".forEach((e) => e.dispatchEvent(new Event('pointerleave')))"
    )
    assert browser.evaluate(texts) == before
    assert len(before) > 10


def test_arrow_keys_move_the_readout(browser: Browser, page: Path) -> None:
    browser.open(page)
    chart = "document.querySelector('#levels [data-panel]:not([hidden]) figure')"
    read = f"{chart}.querySelector('.readout').textContent"
    browser.evaluate(f"{chart}.querySelector('.drawing').focus()")
    assert "30" in browser.evaluate(f"{chart}.querySelector('.at').textContent")
    browser.press("End")
    assert "100" in browser.evaluate(f"{chart}.querySelector('.at').textContent")
    (change,) = pair().differences("SAFER2", "recall@20", [1.0])
    assert FORMATS["lift"](change.relative[0]) in browser.evaluate(read)
    assert browser.evaluate(f"{chart}.querySelectorAll('.cursor').length") == 1
    browser.press("Escape")
    assert browser.evaluate(f"{chart}.querySelectorAll('.cursor').length") == 0
    assert browser.complaints() == []


def test_pointer_moves_the_readout(browser: Browser, page: Path) -> None:
    browser.open(page)
    chart = "document.querySelector('#levels [data-panel]:not([hidden]) figure')"
    browser.evaluate(f"{chart}.scrollIntoView({{behavior: 'instant'}})")
    box = browser.evaluate(f"{chart}.querySelector('svg.wide').getBoundingClientRect().toJSON()")
    x, y = box["right"] - 16, box["top"] + box["height"] / 2
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "100" in browser.evaluate(f"{chart}.querySelector('.at').textContent")


def test_dark_and_light(browser: Browser, page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.open(page)
    light = browser.evaluate(ground)
    browser.prefer("dark")
    dark = browser.evaluate(ground)
    assert light != dark
    button = "document.getElementById('theme')"
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(ground) == light
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(ground) == dark
    browser.prefer("dark", media="print")
    assert browser.evaluate(ground) == "rgb(255, 255, 255)"
    browser.evaluate("localStorage.clear()")


@pytest.fixture(scope="module")
def wide(folder: Path) -> Path:
    groups = np.array(["a very long name of a group " * 3, "b"])[np.arange(200) % 2]
    models = [make(f"{'LongName' * 8} {n}", seed=n, groups=groups) for n in range(6)]
    return report(compare(models, resamples=20), folder / "wide.html")


@pytest.mark.parametrize("width", [320, 390, 760, 1200, 1900])
def test_nothing_is_wider_than_the_screen(browser: Browser, wide: Path, width: int) -> None:
    browser.resize(width, mobile=width < 600)
    browser.open(wide)
    assert not browser.evaluate(TOO_WIDE)


def test_phone_gets_its_own_chart(browser: Browser, page: Path) -> None:
    for width, kind in ((390, "narrow"), (1200, "wide")):
        browser.resize(width, mobile=width < 600)
        browser.open(page)
        shown = browser.evaluate(
            "[...document.querySelectorAll('#levels [data-panel]:not([hidden]) svg.plot')]"
            ".filter((e) => e.getClientRects().length).map((e) => e.classList[1])"
        )
        assert shown == [kind]


def test_hostile_names_run_nothing(browser: Browser, folder: Path) -> None:
    groups = np.array([HOSTILE, "b"])[np.arange(200) % 2]
    models = [make(f"{HOSTILE}{n}", seed=n, groups=groups) for n in (1, 2)]
    hostile = report(compare(models, resamples=20), folder / "hostile.html", title=HOSTILE)
    browser.open(hostile)
    assert browser.evaluate("document.title") == HOSTILE
    assert browser.evaluate("document.images.length") == 0
    assert browser.complaints() == []


def test_reads_without_a_script(browser: Browser, page: Path) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        assert not browser.evaluate("document.documentElement.classList.contains('js')")
        text = browser.evaluate("document.body.innerText")
        assert pair().verdict("SAFER2", "recall@20", 0.3) in text
        assert not browser.evaluate("!!document.getElementById('theme').getClientRects().length")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_prints_on_paper(browser: Browser, page: Path, folder: Path) -> None:
    browser.open(page)
    assert browser.print(folder / "report.pdf").startswith(b"%PDF")
