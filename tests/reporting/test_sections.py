"""What the sections show of unusual results: numbers, marks, and code."""

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecf import Evaluation, compare
from tests.reporting.evaluations import GROUPS, METRICS, make, pair, repeated
from tests.reporting.reader import Reader, read


def section(page: Reader, title: str, end: str) -> str:
    """Return the visible text between two headings."""
    return page.shown.partition(title)[2].partition(end)[0]


def with_training(name: str, seed: int = 1, **changes: Any) -> Evaluation:
    evaluation = make(name, seed=seed)
    return dataclasses.replace(evaluation, training={**evaluation.training, **changes})


def at_floor(name: str, shift: float) -> Evaluation:
    """Return an evaluation in which half of the users have no hit, and all have ranks."""
    recall = np.r_[np.zeros(100), np.linspace(0.1, 0.9, 100)]
    scores = {"recall@20": recall, "ndcg": np.linspace(0.1, 0.5, 200) + shift}
    return dataclasses.replace(make(name), scores=scores)


def test_a_tail_of_zeros_is_told_and_another_metric_shown(tmp_path: Path) -> None:
    models = [at_floor("iALS", 0), at_floor("ERM-MF", 0.01), at_floor("SAFER2", 0.05)]
    comparison = compare(models, resamples=50)
    page = read(comparison, tmp_path)
    verdict = section(page, "Verdict", "Who is lifted")
    assert f"{comparison.floor('recall@20', 0.3)}." in verdict
    assert "Better for the worst-off 30 %" in verdict
    assert "SAFER2 is shown first because it has the highest ndcg of 2 models" in verdict
    lift = comparison.difference("SAFER2", "ndcg", 0.3).relative[0]
    cards = [
        float(found["value"] or "nan")
        for found, _ in page.numbers
        if (found.get("data-metric"), found["data-stat"]) == ("ndcg", "relative")
    ]
    assert cards[0] == pytest.approx(lift, rel=1e-5)
    alone = section(read(models[2], tmp_path), "Verdict", "From the worst-off to everybody")
    assert f"{models[2].tail('ndcg', 0.3):.4f}" in alone


def zeros(users: int) -> Any:
    models = [make("iALS", users=users), make("SAFER2", users=users, seed=2)]
    scores = {metric: np.zeros(users) for metric in METRICS}
    return compare([dataclasses.replace(each, scores=scores) for each in models], resamples=20)


@pytest.mark.parametrize("users", [1, 200])
def test_nothing_to_lift_is_no_empty_chart(tmp_path: Path, users: int) -> None:
    page = read(zeros(users), tmp_path)
    assert not any("lift over" in (a.get("aria-label") or "") for _, a in page.elements)


def test_zero_beside_zero_has_no_lift_but_a_difference(tmp_path: Path) -> None:
    before = np.r_[np.zeros(80), np.linspace(0.1, 1, 120)]
    models = [
        dataclasses.replace(make(name), scores={"recall@20": scores})
        for name, scores in (("iALS", before), ("SAFER2", np.r_[np.zeros(50), before[50:] + 0.1]))
    ]
    page = read(compare(models, resamples=30), tmp_path)
    row = section(page, "recall@20 at every level", "Worst-off 30 %").partition("Worst-off 10 %")[2]
    assert "0.0 %" not in row
    assert "\u2013+0.0000 [+0.0000, +0.0000]" in row


def test_several_splits_are_shown_one_by_one(tmp_path: Path) -> None:
    comparison = repeated(users=100)
    page = read(comparison, tmp_path)
    assert "200 users · 3 splits" in page.shown
    words = section(page, "Split by split", "Who gains")
    change = comparison.difference("SAFER2", "recall@20", 0.3)
    lifts = [f"{each:+.1f} %" for each in change.split_lifts]
    assert f"SAFER2worst-off 30 %{change.splits_won} of 3" in words
    for number, lift in enumerate(lifts, start=1):
        assert f"{number}{lift}" in words


def test_small_groups_are_marked_and_never_the_worst(tmp_path: Path) -> None:
    page = read(pair(groups=GROUPS), tmp_path)
    words = section(page, "Groups of users", "How badly")
    assert len(re.findall(r"group [56](100|50) \((50|25) %\)", words)) == 2
    assert words.count("worst0.") == 2  # one flag for each model
    assert re.search(r"group [56](100|50) \((50|25) %\)worst0\.", words)
    assert re.search(r"5 smaller groups50 \(25 %\)", words)
    assert len(re.findall(r"group \dfew users10 \(5 %\)", words)) == 5
    assert words.count("few users") == 5
    nobody = read(pair(groups=np.arange(200) % 20), tmp_path)
    assert "worst0." not in section(nobody, "Groups of users", "How badly")


@pytest.mark.parametrize(
    ("epochs", "titles"),
    [
        (
            [
                {"epoch": n, "objective": 9 / n, "kl": n / 3, "score": None, "seconds": {"x": 1}}
                for n in (1, 2, 3)
            ],
            ["Objective", "Kl"],
        ),
        ([{"epoch": n, "loss": 1 / n, "seconds": 2.0} for n in (1, 2)], ["Loss"]),
        ([{"auc": 0.1, "note": "warm", "flags": [1], "ok": True}], ["Auc"]),
        ([{"epoch": "first", "auc": float("nan")}, {"epoch": 2, "auc": 0.5}], ["Auc"]),
        (["no record at all"], []),
    ],
)
def test_any_history_is_shown_as_far_as_it_goes(
    tmp_path: Path, epochs: list[Any], titles: list[str]
) -> None:
    page = read(with_training("MultVAE", history=epochs), tmp_path)
    (run,) = page.payload["runs"]
    assert [each["title"].capitalize() for each in run["progress"]] == titles
    assert ("How training went" in page.shown) == bool(titles)
    assert "nan" not in re.findall("[a-z]+", page.shown.lower())


def test_the_page_says_how_to_repeat_it(tmp_path: Path) -> None:
    settings = {"split": "strong generalisation", "seed": 98765, "nothing": None}
    models = [
        dataclasses.replace(each, settings=settings, data="f00d" * 16)
        for each in (make("iALS"), make("ERM-MF", seed=2))
    ]
    page = read(
        compare(models, resamples=20), tmp_path, settings={"command": "safecf demo", "run": 7}
    )
    words = section(page, "How to repeat this", "In plain words")
    for said in ("splitstrong generalisation", "seed98765", "run7", "f00d" * 16, "safecf0.0.0"):
        assert said in words
    assert "Commandsafecf demo" in words
    assert "nothing" not in words
    assert page.payload["settings"]["seed"] == "98765"


def test_models_are_written_as_python(tmp_path: Path) -> None:
    params = {"factors": 32, "bandwidth": "inf", "kernel": "gauss'ian", "random_state": None}
    models = [
        with_training("ERM-MF\nimport os", **{"class": "ERMMF", "params": params}),
        with_training("odd", seed=2, **{"class": "not python!", "params": params}),
    ]
    words = section(read(compare(models, resamples=20), tmp_path), "Models", "Versions")
    code = words[: words.rindex(")") + 1]
    (line,) = ast.parse(code).body
    assert isinstance(line, ast.Expr)
    assert isinstance(line.value, ast.Call)
    given = {each.arg: ast.unparse(each.value) for each in line.value.keywords}
    assert given["bandwidth"] == "float('inf')"
    assert ast.literal_eval(given["kernel"]) == "gauss'ian"
    assert code.startswith("# ERM-MF import os\nERMMF(factors=32, ")


def test_values_of_auto_options_are_shown(tmp_path: Path) -> None:
    auto = {"factors": 32, "unobserved_weight": "auto", "bandwidth": "auto"}
    given = {"factors": 32, "unobserved_weight": 0.1, "bandwidth": "auto"}
    history = [{"epoch": each, "objective": 1.0, "bandwidth": 0.3} for each in (1, 2)]
    models = [
        with_training(
            "all auto",
            **{"class": "SAFER2", "params": auto, "history": history},
            resolved={"unobserved_weight": 0.01234, "bandwidth": "inf"},
        ),
        with_training(
            "one given",
            seed=2,
            **{"class": "SAFER2", "params": given, "resolved": {"bandwidth": 0.5}},
        ),
    ]
    page = read(compare(models, resamples=20), tmp_path)
    code = section(page, "Models", "Versions")
    assert "# in this training: unobserved_weight = 0.0123, bandwidth = inf" in code
    assert "# in this training: bandwidth = 0.5" in code
    top = page.text.partition("Verdict")[0]
    assert "all auto: unobserved_weight=auto: 0.0123" in top
    assert "one given: unobserved_weight=0.1" in top
    curves = page.payload["runs"][0]["progress"]
    assert [each["title"] for each in curves] == ["Objective"]  # the bandwidth is no curve
