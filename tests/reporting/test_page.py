"""The page without a browser: numbers, names, odd results, files."""

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecf import Comparison, Evaluation, compare, report
from tests.reporting.evaluations import GROUPS, HOSTILE, METRICS, TAILS, make, pair, repeated
from tests.reporting.expected import expected, written
from tests.reporting.reader import Reader, read


@pytest.mark.parametrize("make_results", [pair, repeated])
def test_numbers_on_the_page_are_those_of_the_data(tmp_path: Path, make_results: Any) -> None:
    comparison = make_results(groups=GROUPS)
    page = read(comparison, tmp_path)
    seen = set()
    for found, text in page.numbers:
        value, stat = float(found["value"] or ""), found["data-stat"] or ""
        metric = found.get("data-metric") or ""
        assert text == written(stat, value)
        level = float(found.get("data-level") or "nan")
        model, group = found["data-model"] or "", found.get("data-group") or ""
        wanted = expected(comparison, stat, metric, level, model, group)
        assert value == pytest.approx(wanted, rel=1e-5), (stat, metric, level, model, group)
        seen.add((stat, metric, level))
    for metric in METRICS:
        for level in TAILS:
            assert {("value", metric, level), ("relative", metric, level)} <= seen
    assert {stat for stat, *_ in seen} >= {"wins", "losses", "group", "risk", "worst group"}
    assert {stat for stat, *_ in seen} >= {"catalogue", "coverage"}


def test_verdict_stands_on_the_page_without_a_script(tmp_path: Path) -> None:
    comparison = pair()
    page = read(comparison, tmp_path, metric="ndcg@20")
    assert comparison.verdict("SAFER2", "ndcg@20", 0.3) in page.shown
    assert comparison.verdict("SAFER2", "recall@20", 0.3) not in page.shown
    panels = [a for _, a in page.elements if a.get("class") == "panel"]
    assert {each["data-metric"] for each in panels if "hidden" not in each} == {"ndcg@20"}
    # Every metric stands in the overview, without a script.
    for metric in METRICS:
        assert ("tr", {"data-metric": metric}) in page.elements


@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.2, "Better for the"), (0.0, "No clear difference for the"), (-0.2, "Worse for the")],
)
def test_verdict_is_honest(tmp_path: Path, gain: float, words: str) -> None:
    first = make("iALS", users=400)
    change = gain * np.random.default_rng(3).uniform(0.2, 0.4, 400)
    scores = {metric: np.clip(v + change, 0, 2) for metric, v in first.scores.items()}
    if gain == 0:
        scores = {metric: np.random.default_rng(1).permutation(v) for metric, v in scores.items()}
    second = dataclasses.replace(first, model="other", scores=scores)
    page = read(compare([first, second], resamples=60), tmp_path)
    assert words in page.text


def test_few_users_prove_nothing(tmp_path: Path) -> None:
    page = read(pair(users=5), tmp_path)
    assert "Too few users to tell" in page.text
    assert "5 users were measured; it takes 30" in page.text
    assert "no clear difference" not in page.text
    assert "lifts" not in page.shown.partition("Who is lifted")[0]


def test_needs_nothing_from_outside(tmp_path: Path) -> None:
    path = report(pair(), tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch"}
    for tag, attributes in Reader(text).elements:
        assert tag not in ("link", "iframe", "img", "object")
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]


def test_identifiers_are_unique_and_links_lead_somewhere(tmp_path: Path) -> None:
    page = read(pair(), tmp_path)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        if "href" in attributes:
            assert (attributes["href"] or "")[1:] in ids


def test_everything_has_a_name_for_those_who_cannot_see_it(tmp_path: Path) -> None:
    page = read(pair(groups=np.arange(200) % 3), tmp_path)
    for tag, attributes in page.elements:
        if tag == "svg" and attributes.get("aria-hidden") != "true":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
        if attributes.get("role") == "region":
            assert attributes["aria-label"]
    headings = [tag for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1


def test_names_cannot_inject_anything(tmp_path: Path) -> None:
    groups = np.array([HOSTILE, "b"])[np.arange(200) % 2]
    metric = f"recall@20{HOSTILE}"
    evaluations = [
        make(f"{HOSTILE}{seed}", seed=seed, groups=groups, metrics=(metric, "recall@20"))
        for seed in (1, 2)
    ]
    page = read(
        compare(evaluations, resamples=20),
        tmp_path,
        title=HOSTILE,
        data_summary={HOSTILE: HOSTILE},
        metric=metric,
    )
    assert not any(tag == "img" for tag, _ in page.elements)
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert page.payload["title"] == HOSTILE
    assert HOSTILE in page.text


def test_control_characters_are_escapes_on_the_page(tmp_path: Path) -> None:
    """Two names that differ only in a line break are told apart; lone surrogates are written."""
    hurt = "a\x1b[31m\n\u202eb\udc80<script>alert(1)</script>"
    said = r"a\x1b[31m\n\u202eb\udc80<script>alert(1)</script>"
    groups = np.array([hurt, "b"])[np.arange(200) % 2]
    evaluations = [make(f"{hurt}{seed}", seed=seed, groups=groups) for seed in (1, 2)]
    for each in evaluations:
        each.training["params"] |= {"kernel": hurt, hurt: 1}
        each.training["history"][0][hurt] = 1.0
        each.versions[hurt] = hurt
    settings = {"command": f"safecf\n{hurt}", hurt: hurt}
    page = read(
        compare(evaluations, resamples=20),
        tmp_path,
        title=hurt,
        data_summary={hurt: hurt},
        settings=settings,
    )
    raw = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]", raw)
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert page.payload["title"] == hurt
    assert page.text.count(f"{said}1") > 3
    assert f"safecf\n{said.partition(chr(92) + 'n')[0]}" in page.text
    for _, attributes in page.elements:
        if "data-chart" in attributes:
            json.loads(attributes["data-chart"] or "")


def many() -> Comparison:
    return compare([make(f"model {n}", seed=n, gain=0.02 * n) for n in range(9)], resamples=20)


def without_scores(metrics: tuple[str, ...]) -> list[Evaluation]:
    found = []
    for seed, name in enumerate(("iALS", "SAFER2")):
        evaluation = make(name, seed=seed)
        empty = {metric: np.full(200, np.nan) for metric in metrics}
        found.append(dataclasses.replace(evaluation, scores={**evaluation.scores, **empty}))
    return found


def zeros(*, everywhere: bool) -> list[Evaluation]:
    first = make("iALS")
    scores = {metric: np.zeros(200) for metric in METRICS}
    second = make("SAFER2", seed=2)
    second = dataclasses.replace(second, scores=scores) if everywhere else second
    return [dataclasses.replace(first, scores=scores), second]


def zeros_on_splits() -> Comparison:
    found = repeated()
    scores = {metric: np.zeros_like(values) for metric, values in found.baseline.scores.items()}
    return compare([dataclasses.replace(found.baseline, scores=scores), *found.others], resamples=9)


CASES: dict[str, Any] = {
    "single": lambda: make("SAFER2"),
    "list of one": lambda: [make("SAFER2")],
    "single, one user": lambda: make("SAFER2", users=1),
    "one user": lambda: pair(users=1),
    "two users": lambda: pair(users=2),
    "no history": lambda: pair(epochs=0),
    "one epoch": lambda: pair(epochs=1),
    "several splits": repeated,
    "several splits, one user": lambda: repeated(users=1),
    "several splits, zeros": zeros_on_splits,
    "one model on several splits": lambda: repeated().baseline,
    "many epochs": lambda: pair(epochs=3000),
    "no losses": lambda: pair(losses=False),
    "a metric without scores": lambda: without_scores(("recall@50",)),
    "no metric with scores": lambda: without_scores(METRICS),
    "nine models": many,
    "a baseline of zero": lambda: zeros(everywhere=False),
    "all zero": lambda: zeros(everywhere=True),
    "the same scores": lambda: [make("a"), make("b")],
    "groups": lambda: pair(groups=np.arange(200) % 5),
    "many groups": lambda: pair(groups=np.array([f"group {n}" for n in range(200)])),
    "one group": lambda: pair(groups=np.zeros(200, dtype=int)),
    "constant losses": lambda: dataclasses.replace(make("SAFER2"), losses=np.ones(200)),
    "losses of NaN": lambda: dataclasses.replace(make("SAFER2"), losses=np.full(200, np.nan)),
    "no catalogue": lambda: dataclasses.replace(make("SAFER2"), catalogue={}),
    "small groups": lambda: pair(groups=np.arange(200) % 20),
    "names with NUL": lambda: [make("a\0b"), make("c", seed=2)],
    "read back": lambda: Evaluation.from_dict(make("SAFER2").to_dict()),
}


@pytest.mark.parametrize("case", CASES)
def test_unusual_results_still_give_a_page(tmp_path: Path, case: str) -> None:
    page = read(CASES[case](), tmp_path)
    words = page.text.lower()
    assert "nan" not in re.findall(r"[a-z]+", words)
    assert not re.search(r"\binf\b|none\b", words.replace("none of", ""))
    for _, attributes in page.elements:
        for key in ("d", "x", "y", "x1", "width", "height", "transform", "data-x", "data-y"):
            assert not re.search("nan|inf", attributes.get(key) or "")


@pytest.mark.parametrize("level", [0.01, 0.07, 0.3, 1.0])
def test_any_level(tmp_path: Path, level: float) -> None:
    comparison = pair()
    page = read(comparison, tmp_path, level=level)
    assert page.payload["level"] == level
    assert comparison.verdict("SAFER2", "recall@20", level) in page.text
    for each in (page, read(comparison.baseline, tmp_path, level=level)):
        assert "worst-off 100 %" not in each.text.lower()
        marked = {a.get("data-stat") for a, _ in each.numbers} & {"loss var", "loss cvar"}
        assert bool(marked) == (level < 1)


def test_stays_small_with_many_users(tmp_path: Path) -> None:
    metrics = tuple(f"{name}@{k}" for name in ("recall", "ndcg") for k in (20, 50, 100))
    evaluations = [
        make(
            f"model {seed}",
            users=10_000,
            seed=seed,
            metrics=metrics,
            epochs=200,
            groups=np.arange(10_000) % 40,
        )
        for seed in range(3)
    ]
    path = report(compare(evaluations, resamples=10), tmp_path / "report.html")
    assert path.stat().st_size < 400_000


def test_same_results_give_the_same_file(tmp_path: Path) -> None:
    first, second = (report(pair(), tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_makes_the_folder_and_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    assert report(make("SAFER2"), str(path)) == path
    assert report(make("SAFER2"), path, title="again") == path
    assert "again" in path.read_text(encoding="utf-8")
    assert os.listdir(path.parent) == ["report.html"]


def test_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with pytest.raises(IsADirectoryError, match="name the HTML file"):
        report(make("SAFER2"), tmp_path)
    with pytest.raises(ValueError, match="did you mean 'recall@20'"):
        report(make("SAFER2"), path, metric="recal@20")
    with pytest.raises(ValueError, match="no user has a score for 'recall@50'"):
        report(without_scores(("recall@50",)), path, metric="recall@50")
    with pytest.raises(ValueError, match="share of users"):
        report(make("SAFER2"), path, level=30)
    with pytest.raises(ValueError, match="at least one"):
        report([], path)
    assert os.listdir(tmp_path) == []
