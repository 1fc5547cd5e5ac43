"""The page in a real browser: no errors, no requests, right numbers, all widths and colours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from safecf import compare, report
from tests.reporting.browser import Browser, needs_chromium
from tests.reporting.evaluations import GROUPS, HOSTILE, TAILS, make, pair
from tests.reporting.expected import STATS, expected, written
from tests.reporting.reader import plain

pytestmark = needs_chromium

# Every visible number with its meaning, from its own attributes or those around it.
SHOWN = """(() => {
  const of = (e, key) => e.closest(`[data-${key}]`)?.dataset[key] ?? "";
  return [...document.querySelectorAll("data")].filter((e) => e.checkVisibility())
    .map((e) => [e.dataset.stat, of(e, "metric"), of(e, "level"), of(e, "model"), of(e, "group"),
                 e.value, e.textContent]);
})()"""
CHOOSE = """(() => { const s = document.getElementById('metric'); s.value = '{}';
  s.dispatchEvent(new Event('change')); })()"""
PANEL = "document.querySelector('#levels .panel:not([hidden])')"
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return report(pair(groups=GROUPS), folder / "pair.html")


@pytest.fixture(autouse=True)
def desktop(browser: Browser) -> None:
    browser.resize(1200)
    browser.prefer("light")


def test_no_errors_and_no_requests(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.evaluate("document.documentElement.classList.contains('js')")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def choose(browser: Browser, metric: str) -> None:
    browser.evaluate(CHOOSE.replace("{}", metric))
    browser.wait_for(f"{PANEL}.dataset.metric === '{metric}' && {PANEL}.childElementCount > 0")


def test_numbers_shown_are_those_of_the_data(browser: Browser, page: Path) -> None:
    comparison = pair(groups=GROUPS)
    browser.open(page)
    for metric in ("recall@20", "ndcg@20"):
        choose(browser, metric)
        browser.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        counted: dict[str, int] = {}
        for stat, of, level, model, group, value, text in browser.evaluate(SHOWN):
            wanted = expected(comparison, stat, of, float(level or "nan"), model, group)
            assert float(value) == pytest.approx(wanted, rel=1e-5), (stat, of, level, model, group)
            assert text == written(stat, wanted)
            counted[stat] = counted.get(stat, 0) + 1
        # Every kind of number is there: lifts, wins, groups, catalogue, losses.
        assert counted.keys() == STATS - {"splits_won"}
        assert counted["value"] >= 2 * len(TAILS)
        assert counted["relative"] >= len(TAILS)
        assert counted["group"] == 2 * (7 + 2)
        assert counted["catalogue"] == 4


def test_only_the_chosen_metric_is_seen(browser: Browser, page: Path) -> None:
    """The other metrics are compressed until one is chosen; the overview has them all."""
    browser.open(page)
    seen = """[...document.querySelectorAll('.panel')].filter((e) => e.checkVisibility())
        .map((e) => e.dataset.metric)"""
    assert set(browser.evaluate(seen)) == {"recall@20"}
    assert browser.evaluate("document.querySelectorAll('.panel[hidden] *').length") == 0
    choose(browser, "recall@50")
    assert set(browser.evaluate(seen)) == {"recall@50"}
    browser.evaluate("document.querySelector('#levels .panel:not([hidden]) .drawing').focus()")
    browser.press("End")
    assert browser.evaluate(f"{PANEL}.querySelector('.at').textContent") == "All users"
    rows = "[...document.querySelectorAll('#numbers tr[data-metric]')].map((e) => e.dataset.metric)"
    assert browser.evaluate(rows)[:3] == ["recall@20", "recall@50", "ndcg@20"]
    assert browser.complaints() == []


def test_script_writes_numbers_as_the_page_does(browser: Browser, page: Path) -> None:
    """At its first point every read-out has the text that Python wrote."""
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
    assert len(before) >= 8


def test_arrow_keys_move_the_readout(browser: Browser, page: Path) -> None:
    browser.open(page)
    chart = "document.querySelector('#levels .panel:not([hidden]) figure')"
    read = f"{chart}.querySelector('.readout').textContent"
    browser.evaluate(f"{chart}.querySelector('.drawing').focus()")
    assert "30" in browser.evaluate(f"{chart}.querySelector('.at').textContent")
    browser.press("End")
    assert browser.evaluate(f"{chart}.querySelector('.at').textContent") == "All users"
    (change,) = pair().differences("SAFER2", "recall@20", [1.0])
    assert written("relative", change.relative[0]) in browser.evaluate(read)
    assert browser.evaluate(f"{chart}.querySelectorAll('.cursor').length") == 1
    browser.press("Escape")
    assert browser.evaluate(f"{chart}.querySelectorAll('.cursor').length") == 0
    assert browser.complaints() == []


def test_pointer_moves_the_readout(browser: Browser, page: Path) -> None:
    browser.open(page)
    chart = "document.querySelector('#levels .panel:not([hidden]) figure')"
    browser.evaluate(f"{chart}.scrollIntoView({{behavior: 'instant'}})")
    box = browser.evaluate(f"{chart}.querySelector('svg.wide').getBoundingClientRect().toJSON()")
    x, y = box["right"] - 16, box["top"] + box["height"] / 2
    browser.page.mouse.move(x, y)
    assert browser.evaluate(f"{chart}.querySelector('.at').textContent") == "All users"


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
            "[...document.querySelectorAll('#levels .panel:not([hidden]) svg.plot')]"
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
        assert pair().verdict("SAFER2", "recall@20", 0.3) in plain(text)
        assert not browser.evaluate("!!document.getElementById('theme').getClientRects().length")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_prints_on_paper(browser: Browser, page: Path, folder: Path) -> None:
    browser.open(page)
    assert browser.print(folder / "report.pdf").startswith(b"%PDF")


def test_paper_has_the_chosen_metric_and_what_is_folded(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.prefer("light", media="print")
    small = "document.querySelector('details.also-printed table').checkVisibility()"
    assert browser.evaluate(small)
    assert not browser.evaluate("document.querySelector('details.numbers').checkVisibility()")
    seen = "[...document.querySelectorAll('.panel')].filter((e) => e.checkVisibility()).length"
    assert browser.evaluate(seen) == browser.evaluate(
        "document.querySelectorAll('.panel:not([hidden])').length"
    )
    together = """[...document.querySelectorAll('#numbers table')]
        .every((e) => getComputedStyle(e.closest('.keep')).breakInside === 'avoid')"""
    assert browser.evaluate(together)
    footer = "getComputedStyle(document.querySelector('footer')).breakBefore"
    assert browser.evaluate(footer) == "avoid"


def test_a_phone_hints_at_more_and_breaks_no_name(browser: Browser, folder: Path) -> None:
    models = [make("iALS"), make("ERM-MF", seed=2)]
    path = report(compare(models, resamples=20), folder / "names.html")
    browser.resize(390, mobile=True)
    browser.open(path)
    lines = "[...document.querySelectorAll('h1 bdi bdi')].map((e) => e.getClientRects().length)"
    assert browser.evaluate(lines) == [1, 1]
    assert "gradient" in browser.evaluate(
        "getComputedStyle(document.querySelector('nav')).maskImage"
    )
    # Borders of collapsed tables stay behind when their sticky column moves.
    collapse = "getComputedStyle(document.querySelector('#numbers table')).borderCollapse"
    assert browser.evaluate(collapse) == "separate"
    sticky = "getComputedStyle(document.querySelector('#numbers th[scope=row]')).borderTopWidth"
    assert browser.evaluate(sticky) == "1px"


def test_readouts_rest_on_what_matters(browser: Browser, page: Path) -> None:
    """Without a pointer, the read-outs of the users' charts show a summary, not a point."""
    browser.open(page)
    chart = "document.querySelector('#gains .panel:not([hidden]) figure[data-chart]')"
    read = f"{chart}.querySelector('.readout').innerText"
    before = browser.evaluate(read)
    assert before.startswith("Mean gain +")
    assert "mean loss" in before
    browser.evaluate(f"{chart}.querySelector('.drawing').focus()")
    browser.press("End")
    assert browser.evaluate(read).startswith("The user at 100")
    browser.press("Escape")
    assert browser.evaluate(read) == before
