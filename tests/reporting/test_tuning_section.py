"""The section on tuning: every trial in the chart, the front and the defaults in the table."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from safecf import compare, report
from safecf.tuning import LogUniform, Objective, Scores, Trial, pareto_front
from tests.reporting.drawn import plots
from tests.reporting.evaluations import HOSTILE, make

POINTS = [(0.30, 0.10), (0.32, 0.09), (0.31, 0.12), (0.29, 0.13), (0.28, 0.08), (0.05, 0.01), None]
STATES = ["complete", "complete", "complete", "pruned", "complete", "complete", "failed"]
RESULTS = compare(
    [make("SAFER2 (defaults)"), make("SAFER2 (tuned)", seed=2, gain=0.1)], resamples=60
)


def tuned(points: Any = POINTS, name: str = "SAFER2", seconds: float = 13, **options: Any) -> Any:
    """What `tune` returns, as far as the page needs it."""
    trials = [
        Trial(n, {"h": 0.1 * n}, STATES[n], 6, None if p is None else Scores(*p), seconds=seconds)
        for n, p in enumerate(points)
    ]
    target = SimpleNamespace(shape=(77, 9))
    search = SimpleNamespace(
        name=name,
        tuned_name="SAFER2 (tuned)",
        trials=trials,
        front=pareto_front(trials),
        space={"h": LogUniform(0.1, 1.0)},
        edges=lambda trial: ["h"],
        task=SimpleNamespace(split=SimpleNamespace(validation=SimpleNamespace(target=target))),
    )
    given = {"objective": Objective(), "pick": "objective"} | options
    return SimpleNamespace(searches=[search], picked=[trials[2]], **given)


def written(tmp_path: Path, tuning: Any) -> str:
    """Return the section of a page."""
    page = report(RESULTS, tmp_path / "page.html", tuning=tuning).read_text(encoding="utf-8")
    return page.partition('id="tuning"')[2].partition("<section")[0].replace("\xa0", " ")


def test_every_trial_is_a_dot_and_the_front_a_line(tmp_path: Path) -> None:
    for plot in plots(RESULTS, tmp_path, "Trials on the validation users", tuning=tuned()):
        dots = {float(x): float(y) for x, y in map(plot.points, plot.of("trial"))}
        across, up = plot.pixel
        drawn = sorted(POINTS[:4])  # two are too low, and one has failed
        assert len(dots) == len(drawn)
        for found, (mean, tail) in zip(sorted(dots.items()), drawn, strict=True):
            assert found == (pytest.approx(mean, abs=across), pytest.approx(tail, abs=up))
        assert len(plot.of("pruned")) == 1
        x, y = plot.points(plot.of("line")[0])
        front = sorted([POINTS[1], POINTS[2], POINTS[3]])
        assert list(x) == pytest.approx([mean for mean, _ in front], abs=across)
        assert list(y) == pytest.approx([tail for _, tail in front], abs=up)
        (ring,), (cross,) = map(plot.of, ("picked", "default"))
        assert plot.points(ring)[0] == pytest.approx(POINTS[2][0], abs=across)
        assert plot.points(ring)[1] == pytest.approx(POINTS[2][1], abs=up)
        x, y = plot.points(cross)
        assert (x.mean(), y.mean()) == (
            pytest.approx(POINTS[0][0], abs=across),
            pytest.approx(POINTS[0][1], abs=up),
        )


def test_the_table_has_the_front_the_defaults_and_what_failed(tmp_path: Path) -> None:
    page = written(tmp_path, tuned())
    numbers = re.findall(r'<th scope="row" class="wrap">(\d+)', page.partition("the front")[2])
    assert numbers[:4] == ["3", "2", "1", "0"]
    assert "0, the defaults</th><td>0.3000</td><td>0.1000</td>" in page
    assert "0.2†" in page  # near an end of its range
    assert "2 of 7 trials score less than the chart shows. 1 of 7 trainings failed." in page
    assert "7 trials in 1.5 minutes." in page
    assert "7 trials in 3 seconds." in written(tmp_path, tuned(seconds=0.43))
    assert 'id="tuning"' not in report(RESULTS, tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("kind", "pick", "said"),
    [
        ("both", "objective", "with the largest mean relative gain over the defaults"),
        ("tail", "objective", "the trial with the best tail"),
        ("both", "mean", "the trial with the best mean"),
        ("both", "2", "trial 2, which was chosen"),
    ],
)
def test_the_section_says_how_a_trial_was_picked(
    tmp_path: Path, kind: str, pick: str, said: str
) -> None:
    objective = replace(Objective(), kind=kind)
    assert said in written(tmp_path, tuned(objective=objective, pick=pick))
    zeros = [None if point is None else (point[0], 0.0) for point in POINTS]
    page = written(tmp_path, tuned(zeros, name=HOSTILE, objective=objective, pick=pick))
    assert "in every trial, so that they told nothing" in page
    assert "<img" not in page
