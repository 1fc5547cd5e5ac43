"""The texts of the sections."""

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecf.evaluation import Comparison, Evaluation, compare
from safecf.reporting.content import Chart, Series
from safecf.reporting.drawing.charts import beyond, level_chart
from safecf.reporting.markup import MINUS, MISSING, SPACE, typeset
from tests.reporting.evaluations import GROUPS, METRICS, history, make, pair, repeated
from tests.reporting.reader import Reader, read


def section(page: Reader, title: str, end: str) -> str:
    """Return the visible text between two headings."""
    return page.shown.partition(title)[2].partition(end)[0]


def with_training(name: str, seed: int = 1, **changes: Any) -> Evaluation:
    evaluation = make(name, seed=seed)
    return dataclasses.replace(evaluation, training={**evaluation.training, **changes})


# The verdict


def test_lines_break_inside_no_number_and_no_name() -> None:
    said = typeset("ERM-MF lowers it by 4.9 %, -0.1 % [-2.6, 2.8] <b>", ["ERM-MF"])
    assert said.startswith('<bdi class="whole">ERM-MF</bdi> lowers it by')
    assert f"4.9{SPACE}%, {MINUS}0.1{SPACE}% [{MINUS}2.6,{SPACE}2.8]" in said
    assert "&lt;b&gt;" in said
    assert typeset("x" * 30, ["x" * 30]) == f"<bdi>{'x' * 30}</bdi>"


def test_models_of_one_kind_are_told_apart(tmp_path: Path) -> None:
    options = [{"factors": 32, "tail": 0.3}, {"factors": 64, "tail": 0.3}]
    models = [
        with_training(f"IALS {n}", seed=n, params=each) for n, each in enumerate(options, start=1)
    ]
    page = read(compare(models, resamples=20), tmp_path)
    assert "IALS 1: factors=32 · IALS 2: factors=64" in page.shown


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
    assert "Worst-off 30 %, ndcg" in alone
    assert f"{models[2].tail('ndcg', 0.3):.4f}" in alone
    assert "whatever the model" not in section(read(pair(), tmp_path), "Verdict", "Who is lifted")


def test_metrics_over_the_whole_ranking_are_explained(tmp_path: Path) -> None:
    scores = dict.fromkeys(("ndcg@20", "ndcg", "auc", "log_rank"), np.linspace(0, 1, 200))
    page = read(dataclasses.replace(make("iALS"), scores=scores), tmp_path)
    words = section(page, "In plain words", "Made by safecf")
    assert "among the first 20 recommendations" in words
    assert words.lower().count("over the whole ranking") == 3


# The levels


def test_a_curve_that_leaves_the_chart_says_so(tmp_path: Path) -> None:
    series = Series("a", 1, [900.0, 20.0, 8.0, 2.0], [-90.0, 2.0, 5.0, 1.0], [9e9, 9e3, 12.0, 3.0])
    chart = Chart([0.02, 0.1, 0.3, 1.0], [series], y_format="lift", at=2)
    drawn = level_chart(chart, level=0.3, label="", y_label="", narrow=False)
    assert drawn.count('class="exit"') == 1
    assert beyond(chart) == {"a": (0.02, 900.0)}
    fall = dataclasses.replace(series, y=[-90.0, 1.0, 8.0, 2.0])
    chart = dataclasses.replace(chart, series=[fall])
    assert beyond(chart) == {"a": (0.02, -90.0)}
    drawn = level_chart(chart, level=0.3, label="", y_label="", narrow=False)
    assert drawn.count('class="exit"') == 1
    tame = dataclasses.replace(series, y=[12.0, 11.0, 8.0, 2.0])
    assert beyond(dataclasses.replace(chart, series=[tame])) == {}
    zeros = np.r_[np.zeros(30), np.linspace(0.01, 1, 170)]
    models = [
        dataclasses.replace(make(name, seed=2), scores={"recall@20": scores})
        for name, scores in (("iALS", zeros), ("SAFER2", np.maximum(zeros, 0.05)))
    ]
    words = section(read(compare(models, resamples=30), tmp_path), "Who is lifted", "Who gains")
    assert "the baseline scores zero, so a lift is not defined" in words
    assert "Outside the chart: SAFER2 reaches +" in words


def zeros(users: int) -> Comparison:
    models = [make("iALS", users=users), make("SAFER2", users=users, seed=2)]
    scores = {metric: np.zeros(users) for metric in METRICS}
    return compare([dataclasses.replace(each, scores=scores) for each in models], resamples=20)


@pytest.mark.parametrize("users", [1, 200])
def test_nothing_to_lift_is_no_empty_chart(tmp_path: Path, users: int) -> None:
    page = read(zeros(users), tmp_path)
    words = section(page, "Who is lifted", "Who gains")
    assert "Every user scores zero with the baseline" in words
    assert "Below" not in words
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
    assert f"{MISSING}+0.0000 [+0.0000, +0.0000]" in row


# The splits


def test_several_splits_are_shown_one_by_one(tmp_path: Path) -> None:
    comparison = repeated(users=100)
    page = read(comparison, tmp_path)
    assert "200 users · 3 splits" in page.shown
    assert "show all 300 appearances of the users" in page.shown
    words = section(page, "Split by split", "Who gains")
    change = comparison.difference("SAFER2", "recall@20", 0.3)
    lifts = [f"{each:+.1f} %" for each in change.split_lifts]
    assert f"SAFER2worst-off 30 %{change.splits_won} of 3" in words
    for number, lift in enumerate(lifts, start=1):
        assert f"{number}{lift}" in words
    assert "each with all appearances" in section(page, "All numbers", "Every metric")
    alone = read(pair(), tmp_path)
    assert "Split by split" not in alone.shown
    assert "appearances" not in alone.shown


def test_few_users_on_many_splits_are_few(tmp_path: Path) -> None:
    words = read(repeated(splits=4, users=10), tmp_path).shown
    assert "25 users were measured; it takes 30" in words


# The users


def test_small_groups_are_marked_and_never_the_worst(tmp_path: Path) -> None:
    page = read(pair(groups=GROUPS), tmp_path)
    words = section(page, "Groups of users", "How badly")
    assert "Groupusers" in words  # the first column has a heading
    assert len(re.findall(r"group [56](100|50) \((50|25) %\)", words)) == 2
    assert words.count("worst0.") == 2  # one flag for each model
    assert re.search(r"group [56](100|50) \((50|25) %\)worst0\.", words)
    assert re.search(r"5 smaller groups50 \(25 %\)", words)
    assert len(re.findall(r"group \dfew users10 \(5 %\)", words)) == 5
    assert words.count("few users") == 5
    assert "worst only if it has at least 30 users" in words
    nobody = read(pair(groups=np.arange(200) % 20), tmp_path)
    assert "so no group is called the worst" in nobody.shown


def test_groups_are_called_what_the_data_call_them(tmp_path: Path) -> None:
    groups = np.array(["taste 1", "taste 2"])[np.arange(200) % 2]
    words = section(read(pair(groups=groups), tmp_path), "Groups of users", "How badly")
    assert "taste 1100 (50 %)" in words
    assert "group taste" not in words


def test_the_tail_has_its_weight_and_its_groups(tmp_path: Path) -> None:
    models = [
        dataclasses.replace(make("iALS", groups=GROUPS), weights=np.ones(200)),
        dataclasses.replace(make("SAFER2", seed=2, groups=GROUPS), weights=np.linspace(0, 1, 200)),
    ]
    captions = re.compile("Weight in training.*Groups of the worst-off users")
    assert captions.search(read(compare(models, resamples=20), tmp_path).shown)
    constant = dataclasses.replace(models[1], weights=np.full(200, 0.3))
    page = read(compare([models[0], constant], resamples=20), tmp_path)
    assert "Weight in training" not in section(page, "Who the worst-off", "Groups of users")


# Losses and training


def test_cvar_is_of_the_training_or_of_the_held_out_users(tmp_path: Path) -> None:
    models = [with_training("iALS", tail=1.0), with_training("SAFER2", seed=2)]
    page = read(compare(models, resamples=20), tmp_path)
    words = section(page, "How training went", "All numbers")
    assert (
        words.count("training CVaR, worst-off 30 %") == 1
    )  # SAFER2's; of all users it is the mean
    assert words.count("mean training loss") == 2
    assert "CVaR" not in words.replace("training CVaR", "")
    assert "held-out user" in section(page, "How badly users are served", "How training")


def test_what_never_changes_is_not_in_a_logarithmic_legend(tmp_path: Path) -> None:
    epochs = [{**each, "residual_weights": 0.0} for each in history(5)]
    words = section(
        read(with_training("iALS", history=epochs), tmp_path), "How training went", "All numbers"
    )
    assert "users U" in words
    assert "weights z" not in words


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


# How to repeat it


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
