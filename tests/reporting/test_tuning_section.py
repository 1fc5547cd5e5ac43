"""The section on tuning: trials, front, defaults, and what lies outside of the chart."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from safecf.evaluation import compare
from safecf.reporting import report
from safecf.reporting.content import TrialPoint, Tuned, TunedModel
from safecf.reporting.drawing.front_chart import bounds, front_chart, inside
from safecf.reporting.sections.tuning_trials import tuning as section
from safecf.tuning import LogUniform, Objective, Scores, Trial, pareto_front
from tests.reporting.evaluations import HOSTILE, make

POINTS = [(0.30, 0.10), (0.32, 0.09), (0.31, 0.12), (0.29, 0.13), (0.28, 0.08), (0.05, 0.01)]


def a_model(name="SAFER2", best=2, points=POINTS):
    states = ["complete", "complete", "complete", "pruned", "complete", "failed"]
    trials = [
        TrialPoint(n, states[n], 6, *(point if n != 5 else (math.nan, math.nan)), {"h": 0.1 * n})
        for n, point in enumerate(points)
    ]
    return TunedModel(name, 1, trials, best, [3, 2, 1], {"h": "0.1 to 1"}, ["h"], 1.5)


def tuned(kind="both", **options):
    return Tuned("recall@20", 0.3, kind, "objective", 200, [a_model(**options)])


def written(found):
    return section(SimpleNamespace(tuned=found))


def test_there_is_no_section_without_tuning():
    assert written(None) == ""


def test_every_trial_is_a_dot_and_the_front_a_line():
    drawn = front_chart(tuned(), label="trials", narrow=False)
    assert drawn.count("<circle") == 4 + 1  # one is too low; a ring around the one picked
    assert drawn.count('class="trial pruned"') == 1
    assert drawn.count("<use") == 3
    assert "SAFER2, trial 2" in drawn
    assert drawn.count('class="default"') == 1


def test_the_cross_marks_the_defaults_of_the_table():
    """Both are trial 0 at its best epoch."""
    moved = [(0.27, 0.085), *POINTS[1:]]
    drawn = [
        front_chart(tuned(points=points), label="", narrow=False) for points in (POINTS, moved)
    ]
    dots, crosses = (
        [re.search(pattern, each).groups() for each in drawn]
        for pattern in (
            r'trial 0: .*?<circle cx="([\d.]+)" cy="([\d.]+)"',
            r'd="M([\d.]+) ([\d.]+)L[^"]*" class="default"',
        )
    )
    for dot, cross in zip(dots, crosses, strict=True):
        assert [float(end) + 5 for end in cross] == pytest.approx(list(map(float, dot)), abs=0.11)
    assert dots[0] != dots[1]
    assert "0, the defaults</th><td>0.2700</td><td>0.0850</td>" in written(tuned(points=moved))


def test_bad_trials_lie_outside_and_are_counted():
    points = [*POINTS[:4], (0.01, 0.001), (0.2, 0.1)]
    found = tuned(points=points)
    low, high = bounds(found)
    assert all(low[0] <= mean <= high[0] and low[1] <= tail <= high[1] for mean, tail in points[:4])
    assert [each.number for each in inside(found.models[0], low)] == [0, 1, 2, 3]
    assert "1 of 6 trials score less than the chart shows." in written(found)
    assert "1 of 6 trainings failed." in written(found)


def test_the_table_has_the_front_and_the_defaults():
    page = written(tuned())
    table = page.partition("the front")[2]
    numbers = re.findall(r'<th scope="row" class="wrap">(\d+)', table)
    assert numbers == ["3", "2", "1", "0"]
    assert "0.2†" in table
    assert "is near an end of its range" in table
    assert "SAFER2</bdi>: the best trials" in written(tuned("tail"))


@pytest.mark.parametrize(
    ("kind", "pick", "said"),
    [
        ("both", "objective", "with the largest mean relative gain over the defaults"),
        ("tail", "objective", "the trial with the best tail"),
        ("both", "mean", "the trial with the best mean"),
        ("both", "2", "trial 2, which was chosen"),
    ],
)
def test_the_section_says_how_a_trial_was_picked(kind, pick, said):
    assert said in written(replace(tuned(kind), pick=pick))


def test_tails_of_zero_are_told_of():
    nothing = "in every trial, so that they told nothing"
    zeros = tuned("tail", points=[(mean, 0.0) for mean, _ in POINTS])
    assert nothing in written(zeros)
    assert nothing not in written(replace(zeros, kind="mean"))
    assert nothing not in written(tuned("tail"))


@pytest.mark.parametrize(("minutes", "said"), [(0.05, "3 seconds"), (1.5, "1.5 minutes")])
def test_short_searches_are_measured_in_seconds(minutes, said):
    found = replace(tuned(), models=[replace(a_model(), minutes=minutes)])
    assert f"6 trials in {said}." in written(found)


def test_names_and_options_are_escaped():
    page = written(tuned(name=HOSTILE))
    assert "<img" not in page


@pytest.fixture
def tuning():
    """What `tune` returns, as far as the page needs it."""
    trials = [Trial(n, {"h": 0.5}, "complete", 6, Scores(*p)) for n, p in enumerate(POINTS)]
    search = SimpleNamespace(
        name="SAFER2",
        tuned_name="SAFER2 (tuned)",
        trials=trials,
        front=pareto_front(trials),
        space={"h": LogUniform(0.1, 1.0)},
        edges=lambda trial: [],
        task=SimpleNamespace(
            split=SimpleNamespace(validation=SimpleNamespace(target=SimpleNamespace(shape=(77, 9))))
        ),
    )
    evaluations = [make("SAFER2 (defaults)"), make("SAFER2 (tuned)", seed=2, gain=0.1)]
    return SimpleNamespace(
        objective=Objective(),
        pick="objective",
        searches=[search],
        picked=[trials[2]],
        evaluations=evaluations,
    )


def test_the_report_shows_a_tuning(tuning, tmp_path):
    results = compare(tuning.evaluations, resamples=60)
    path = report(results, tmp_path / "page.html", tuning=tuning)
    page = path.read_text()
    assert '<a href="#tuning">Tuning</a>' in page
    assert "on 77 validation users" in page
    assert "recall@20 of the validation users, by trial" in page
