"""The page in a real browser: search, pick, compare, explain; all widths, colours and keys."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import Interactions
from tests.reporting.browser import Browser, needs_chromium
from tests.reporting.evaluations import pair
from tests.serving.conftest import HOSTILE, ITEMS, best, fit_on, named
from tests.serving.service import running

pytestmark = needs_chromium

READY = "document.documentElement?.classList.contains('ready')"
TITLES = "[...document.querySelectorAll('.list.{} .name')].map((e) => e.textContent)"
OWN = "[...document.querySelectorAll('.list.{} li.own .name')].map((e) => e.textContent)"
PICKS = "[...document.querySelectorAll('#picks .chip')].map((e) => e.ariaLabel)"
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
FOCUS = "document.activeElement"
SEEN = "document.querySelector('{}')?.checkVisibility() ?? false"


def compared():
    """Return a comparison of the two served models."""
    found = pair()
    training = found.baseline.training | {"class": "IALS"}
    return replace(found, baseline=replace(found.baseline, training=training))


@pytest.fixture(scope="module")
def served(folder):
    (folder / "results.json").write_text(json.dumps(compared().to_dict()))
    files = ("model.safetensors", "baseline.safetensors", "titles.parquet", "results.json")
    with running(*(folder / name for name in files)) as service:
        yield service


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser() as found:
        yield found


@pytest.fixture
def page(browser, served):
    """Open the page anew, on a desktop, in light colours."""
    browser.resize(1200)
    browser.prefer("light")
    visit(browser, served)
    return browser


def visit(browser, served, picks=()):
    fragment = f"#{json.dumps([f'item {each}' for each in picks])}" if picks else ""
    browser.open(f"http://127.0.0.1:{served.port}/{fragment}")
    browser.wait_for(READY)
    if picks:
        browser.wait_for("document.querySelectorAll('.reasons').length === 2")


def search(browser, text):
    browser.evaluate("document.getElementById('query').focus()")
    browser.write(text)
    browser.wait_for("!document.getElementById('found').hidden")


def title(number):
    return f"The {('Café', 'River', 'Machine', 'Orchard', 'Signal')[number % 5]} of Number {number}"


def right(model, picks):
    ids = [each for each, _ in best(model, *(f"item {pick}" for pick in picks))]
    return [title(int(each.split()[1])) if each != "item 59" else HOSTILE for each in ids]


def test_nothing_but_the_service_is_asked_and_nothing_complains(page, served):
    assert page.complaints() == []
    assert {each.split("/")[2] for each in page.requests() if each.startswith("http")} == {
        f"127.0.0.1:{served.port}"
    }
    assert page.evaluate("document.getElementById('known').hidden")  # without the data


def test_search_pick_and_compare_by_keyboard_alone(page, model, baseline):
    page.press("/")
    page.wait_for("document.activeElement.id === 'query'")
    for text, number in (("number 12", 12), ("river number 21", 21)):
        search(page, text)
        assert title(number) in page.evaluate("document.querySelector('#found li').textContent")
        page.press("Enter")
        page.wait_for(f"{PICKS}.includes('Remove {title(number)}')")
    page.wait_for("document.querySelectorAll('.reasons').length === 2")
    wanted = json.dumps(right(model, [12, 21]))
    page.wait_for(f"{TITLES.format('model')}.join() === {wanted}.join()")
    lists = {role: page.evaluate(TITLES.format(role)) for role in ("model", "baseline")}
    assert lists == {"model": right(model, [12, 21]), "baseline": right(baseline, [12, 21])}
    for role, other in (("model", "baseline"), ("baseline", "model")):
        own = [each for each in lists[role] if each not in lists[other]]
        assert page.evaluate(OWN.format(role)) == own
    page.press("Backspace")
    page.wait_for(f"{PICKS}.length === 1")
    assert page.complaints() == []


def test_arrow_keys_and_escape_in_the_search(page):
    search(page, "signal")
    active = "document.getElementById('query').getAttribute('aria-activedescendant')"
    assert page.evaluate(active) == "hit-0"
    page.press("ArrowDown")
    assert page.evaluate(active) == "hit-1"
    page.press("ArrowUp")
    page.press("ArrowUp")
    assert page.evaluate(active) == "hit-6"
    page.press("Escape")
    assert page.evaluate("document.getElementById('found').hidden")
    search(page, "no such title")
    assert "No title" in page.evaluate("document.getElementById('found').textContent")


def test_reasons_are_shown_and_picks_go_back_with_the_address(page, served):
    visit(page, served, [12, 21])
    page.evaluate("document.querySelector('.list.model .acts button').click()")
    page.wait_for("document.querySelectorAll('.list.model .part').length === 2")
    parts = page.evaluate("document.querySelector('.list.model .why').textContent")
    assert title(12) in parts
    assert title(21) in parts
    page.evaluate("document.querySelector('.list.model .add').click()")
    page.wait_for(f"{PICKS}.length === 3")
    page.evaluate("history.back()")
    page.wait_for(f"{PICKS}.length === 2")
    page.evaluate("document.getElementById('clear').click()")
    page.wait_for(f"{PICKS}.length === 0 && !document.getElementById('start').hidden")
    assert not page.evaluate(SEEN.format("#results"))
    assert page.complaints() == []


def test_surprises_and_the_shelf_pick_titles(page):
    page.evaluate("document.querySelector('#shelf button').click()")
    page.wait_for(f"{PICKS}.length === 1")
    page.evaluate("document.getElementById('surprise').click()")
    page.wait_for(f"{PICKS}.length >= 2")
    page.wait_for("document.querySelectorAll('.list.model .name').length === 10")


def test_hostile_titles_are_shown_as_text_and_hostile_addresses_left_alone(page, served):
    search(page, "onerror")
    assert page.evaluate("document.querySelector('#found .name').textContent") == HOSTILE
    page.press("Enter")
    page.wait_for(f"{PICKS}.length === 1")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    for fragment in ("#x", "#%5B%7B%7D%5D", "#%22a%22", "#%", "#[1e400,null,[]]"):
        page.open(f"http://127.0.0.1:{served.port}/{fragment}")
        page.wait_for(READY)
        assert page.evaluate(f"{PICKS}.length") == 0


def test_the_tail_curve_has_the_numbers_of_the_evaluation(page):
    comparison = compared()
    page.evaluate("document.getElementById('curve').focus()")
    page.press("End")
    shown = page.evaluate("document.getElementById('readout').textContent")
    assert shown.startswith("All users")
    for each in (comparison.baseline, *comparison.others):
        assert f"{each.model} {each.tail('recall@20', 1.0):.4f}" in shown
    drawn = "[...document.querySelectorAll('#curve path.line')].map((e) => e.classList[1])"
    assert page.evaluate(drawn) == ["baseline", "model"]
    page.press("Home")
    assert page.evaluate("document.getElementById('readout').textContent") != shown


def test_the_verdict_is_that_of_the_comparison(page):
    comparison = compared()
    for metric in ("recall@20", "ndcg@20"):
        page.evaluate(f"document.getElementById('metric').value = '{metric}'")
        page.evaluate("document.getElementById('metric').dispatchEvent(new Event('change'))")
        said = page.evaluate("document.getElementById('tail-says').textContent")
        said = said.replace("\u00a0", " ")
        assert said.startswith(f"{comparison.verdict('SAFER2', metric)}. Each point is the mean")


def test_equal_picks_are_one_and_models_have_the_names_of_the_evaluation(page, served):
    visit(page, served, [12, 12, 21, 12])
    assert page.evaluate(PICKS) == [f"Remove {title(each)}" for each in (12, 21)]
    text = page.evaluate("document.body.textContent")
    assert ("iALS" in text, "IALS" in text) == (True, False)
    headings = "[...document.querySelectorAll('.list h3')].map((e) => e.textContent)"
    assert page.evaluate(headings) == ["SAFER2", "iALS"]


def focused_click(browser, selector):
    browser.evaluate(f"document.querySelector('{selector}').focus()")
    browser.evaluate(f"{FOCUS}.click()")


def test_the_focus_stays_at_the_like_place(page, served):
    focused_click(page, "#shelf button")
    page.wait_for("document.querySelectorAll('.reasons').length === 2")
    assert page.evaluate(f"{FOCUS}.className") == "chip"
    focused_click(page, ".list.model li:nth-child(3) .add")
    page.wait_for(f"{PICKS}.length === 2")
    third = "document.querySelector('.list.model li:nth-child(3) .add')"
    page.wait_for(f"{FOCUS} === {third} && document.querySelectorAll('.list li').length === 20")
    focused_click(page, "#picks .chip")
    page.wait_for(f"{PICKS}.length === 1")
    assert page.evaluate(f"{FOCUS} === document.querySelector('#picks .chip')")
    page.evaluate(f"{FOCUS}.click()")
    page.wait_for(f"{PICKS}.length === 0")
    assert page.evaluate(f"{FOCUS}.id") == "surprise"


def served_alone(path, titles, **options):
    """Serve a model whose items have these titles."""
    fit_on(named()).save(path / "model.safetensors")
    facts = {"item": [f"item {each}" for each in range(ITEMS)], "title": titles}
    pa.parquet.write_table(pa.table(facts | {"genres": [["One"]] * ITEMS}), path / "titles.parquet")
    return running(path / "model.safetensors", items=path / "titles.parquet", **options)


def test_small_limits_are_kept_and_told(browser, tmp_path):
    known = named()
    count = known.to_csr()[9].nnz
    titles = [title(each) for each in range(ITEMS)]
    with served_alone(tmp_path, titles, data=known, max_k=3, max_history=4) as service:
        browser.resize(1200)
        visit(browser, service)
        assert browser.evaluate("document.querySelectorAll('#shelf button').length") == 3
        search(browser, "signal")
        assert browser.evaluate("document.querySelectorAll('#found li').length") == 3
        browser.press("Enter")
        browser.wait_for("document.querySelectorAll('.list.model .name').length === 3")
        browser.evaluate("document.querySelector('.list.model .acts button').click()")
        browser.wait_for("document.querySelectorAll('.list.model .part').length === 1")
        browser.evaluate("document.getElementById('surprise').click()")
        browser.wait_for(f"{PICKS}.length === 4")
        browser.evaluate("document.getElementById('user').value = 'user 9'")
        browser.evaluate("document.querySelector('#known button').click()")
        told = f"These are the first 4 of {count} picks: the service takes no more."
        notice = "document.getElementById('notice').textContent"
        browser.wait_for(f"{notice} === '{told}' && {PICKS}.length === 4")
        before = browser.evaluate(PICKS)
        search(browser, "river")
        browser.press("Enter")
        browser.wait_for(f"{notice} === 'The service takes 4 picks at most: remove one first.'")
        assert browser.evaluate(PICKS) == before
        assert browser.evaluate("document.getElementById('trouble').hidden")


def test_a_shelf_of_one_genre_is_full_and_long_words_are_cut(browser, tmp_path):
    titles = ["w" * 300, "many words " * 30, *(title(each) for each in range(2, ITEMS))]
    with served_alone(tmp_path, titles) as service:
        browser.resize(390, 844, mobile=True)
        visit(browser, service)
        assert browser.evaluate("document.querySelectorAll('#shelf button').length") == 12
        for text in ("www", "many"):
            search(browser, text)
            browser.press("Enter")
        browser.wait_for(f"{PICKS}.length === 2 && !document.getElementById('results').hidden")
        assert not browser.evaluate(TOO_WIDE)
        tall = "[...document.querySelectorAll('.chip')].map((e) => e.offsetHeight)"
        assert max(browser.evaluate(tall)) < 60


@pytest.mark.parametrize("width", [320, 390, 760, 1200, 1900])
def test_nothing_is_wider_than_the_screen(page, served, width):
    page.resize(width, mobile=width < 600)
    visit(page, served, [12, 21, 30, 31, 44, 59])
    assert not page.evaluate(TOO_WIDE)


def test_a_phone_shows_one_list_at_a_time(page, served):
    page.resize(390, 844, mobile=True)
    visit(page, served, [12, 21])
    lists = [SEEN.format(f".list.{role}") for role in ("model", "baseline")]
    assert [page.evaluate(each) for each in lists] == [True, False]
    focused_click(page, "#switch button:nth-child(2)")
    assert [page.evaluate(each) for each in lists] == [False, True]
    pressed = "[...document.querySelectorAll('#switch button')].map((e) => e.ariaPressed)"
    assert page.evaluate(pressed) == ["false", "true"]
    assert page.evaluate(f"{FOCUS}.ariaPressed") == "true"
    assert page.evaluate(SEEN.format("#legend"))
    assert not page.evaluate(SEEN.format(".strip span span"))
    small = """[...document.querySelectorAll('main button, header button')]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 34).length"""
    assert page.evaluate(small) == 0


def test_dark_and_light(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.prefer("dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate(ground) == light
    page.evaluate("localStorage.clear()")


def give_token(browser, text):
    browser.wait_for("document.getElementById('ask-token')?.open ?? false")
    browser.evaluate(f"document.getElementById('token').value = '{text}'")
    browser.evaluate("document.querySelector('#ask-token button').click()")


def test_a_token_is_asked_for_until_it_is_right_and_then_used_everywhere(browser, folder):
    wrong = "!document.getElementById('token-wrong').hidden"
    with running(folder / "model.safetensors", token="s3cret") as service:
        browser.open(f"http://127.0.0.1:{service.port}/")
        browser.wait_for("document.getElementById('ask-token')?.open ?? false")
        assert not browser.evaluate(wrong)
        give_token(browser, "guess")
        browser.wait_for(f"document.getElementById('ask-token').open && {wrong}")
        assert browser.evaluate("document.getElementById('token').value") == ""
        give_token(browser, "s3cret")
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelectorAll('#shelf button').length") == 12
        assert not browser.evaluate("document.getElementById('ask-token').open")
        browser.evaluate("document.querySelector('footer a').click()")
        browser.wait_for("document.body?.textContent.includes('\"openapi\"') ?? false")


@pytest.mark.parametrize("kind", ["strings", "integers"])
def test_a_known_user_has_picks(browser, tmp_path, kind):
    known, matrix = named(), named().to_csr()
    ids = known.user_ids if kind == "strings" else 2**53 + np.arange(known.num_users)
    data = Interactions.from_csr(matrix, user_ids=ids, item_ids=known.item_ids)
    fit_on(data).save(tmp_path / "model.safetensors")
    with running(tmp_path / "model.safetensors", data=data) as service:
        visit(browser, service)
        browser.evaluate(f"document.getElementById('user').value = '{ids[9]}'")
        browser.evaluate("document.querySelector('#known button').click()")
        has = [f"Remove {known.item_ids[each]}" for each in matrix[9].indices]
        browser.wait_for(f"{PICKS}.join() === '{','.join(has)}'")
        browser.evaluate("document.getElementById('user').value = 'nobody'")
        browser.evaluate("document.querySelector('#known button').click()")
        said = "document.getElementById('trouble').textContent"
        browser.wait_for(f"{said}.startsWith(\"Unknown user 'nobody'\")")


def test_ids_beyond_what_numbers_of_the_browser_hold_are_exact(browser, tmp_path):
    """Neighbours of 2^53 are one number in JavaScript; here they are different items."""
    known = named()
    ids = 2**53 + np.arange(known.num_items)
    ids[1] = -(2**63)
    model = fit_on(Interactions.from_csr(known.to_csr(), item_ids=ids))
    model.save(tmp_path / "model.safetensors")
    picks = [ids[1], ids[21]]
    wanted = ",".join(str(each) for each, _ in best(model, *picks))
    with running(tmp_path / "model.safetensors") as service:
        visit(browser, service)
        for number, each in enumerate(picks):
            search(browser, str(each))
            browser.press("Enter")
            browser.wait_for(f"{PICKS}.length === {number + 1}")
        browser.wait_for("document.querySelectorAll('.list.model .name').length === 10")
        browser.wait_for(f"{TITLES.format('model')}.join() === '{wanted}'")
        address = browser.evaluate("decodeURIComponent(location.hash)")
        assert json.loads(address[1:]) == list(map(int, picks))
        browser.page.reload()
        browser.wait_for(f"{PICKS}.join() === '{','.join(f'Remove {each}' for each in picks)}'")
        assert browser.complaints() == []
