"""Charts show the numbers of the results: every shape against the values, through the ticks."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecf.evaluation import compare, tail_mean, tail_profile, value_at_risk
from tests.reporting.drawn import Plot, plots, svgs
from tests.reporting.evaluations import GROUPS, history, make, pair, repeated

METRIC = "recall@20"
LEVELS = [*np.round(np.arange(0.02, 0.1, 0.02), 2), *np.round(np.arange(0.1, 1.01, 0.05), 2)]


def near(found: Any, wanted: Any, pixel: float) -> None:
    """Compare numbers that were read from a drawing, whose places are rounded to tenths."""
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.06 * abs(pixel) + 1e-12)


def goes_through(plot: Plot, across: Any, up: Any, x: Any, y: Any) -> None:
    """Check a line at these numbers, as far as they are inside the drawing."""
    x, y = np.asarray(x), np.asarray(y)
    low, high = map(float, plot.svg.get("data-y", "").split()[:2])
    inside = (low < y) & (y < high)
    assert inside.sum() > 3
    corner = across[np.abs(np.subtract.outer(x, across)).argmin(axis=1)]
    x = np.where(np.abs(corner - x) < 0.06 * plot.pixel[0], corner, x)
    near(np.interp(x[inside], across, up), y[inside], 2 * plot.pixel[1])


def outline(plot: Plot, area: Any) -> tuple[Any, Any]:
    """Return the upper and the lower edge of an area, from the left to the right."""
    across, up = plot.points(area)
    turn = int(np.argmax(across)) + 1
    return (across[:turn], up[:turn]), (across[turn:][::-1], up[turn:][::-1])


@pytest.mark.parametrize("level", [0.1, 0.3, 0.7])
def test_lifts_with_their_intervals(tmp_path: Path, level: float) -> None:
    results = pair()
    _, lift, low, high = results.relative_curve("SAFER2", METRIC, LEVELS)
    found = plots(results, tmp_path, "by tail level", level=level)
    assert [each.svg.get("class") for each in found] == ["plot wide", "plot narrow"]
    for plot in found:
        (line,), (band,), (mark,), (zero,) = map(plot.of, ("line", "band", "mark", "zero"))
        goes_through(plot, *plot.points(line), LEVELS, lift)
        whole = np.isfinite(high)
        for edge, ends in zip(outline(plot, band), (high, low), strict=True):
            goes_through(plot, *edge, np.array(LEVELS)[whole], ends[whole])
        near(plot.points(mark)[0], level, plot.pixel[0])
        near(plot.points(zero)[1], 0, plot.pixel[1])
        for x, y in map(plot.points, plot.svg.iter("use")):
            at = int(np.argmin(np.abs(np.subtract(LEVELS, x))))
            near(x, LEVELS[at], plot.pixel[0])
            assert y > plot.y(0.0) or y == pytest.approx(lift[at], abs=0.06 * plot.pixel[1])


def test_a_line_that_leaves_the_drawing_has_an_arrow_there(tmp_path: Path) -> None:
    zeros = np.r_[np.zeros(30), np.linspace(0.01, 1, 170)]
    scores = {"iALS": zeros, "SAFER2": np.maximum(zeros, 0.05)}
    models = [replace(make(name), scores={METRIC: each}) for name, each in scores.items()]
    results = compare(models, resamples=30)
    lift = results.relative_curve("SAFER2", METRIC, LEVELS)[1]
    for plot in plots(results, tmp_path, "by tail level"):
        high = float(plot.svg.get("data-y", "").split()[1])
        beyond = np.array(LEVELS)[lift > high]
        (place, edge), *more = map(plot.points, plot.of("exit"))
        assert not more
        near(edge, high, plot.pixel[1])
        assert beyond.max() - 0.02 < place[0] < beyond.max() + 0.05


def test_tails_of_models_without_a_baseline(tmp_path: Path) -> None:
    model = make("SAFER2")
    for plot in plots(model, tmp_path, "by tail level"):
        (line,), (band,) = plot.of("line"), plot.of("band")
        goes_through(plot, *plot.points(line), LEVELS, model.tail_curve(METRIC, LEVELS)[1])
        ends = np.array([model.interval(METRIC, level) for level in LEVELS])
        for edge, wanted in zip(outline(plot, band), ends.T[::-1], strict=True):
            goes_through(plot, *edge, LEVELS, wanted)


def area(across: Any, up: Any) -> float:
    """Return the area of a polygon."""
    return abs(np.sum(across * np.roll(up, -1) - np.roll(across, -1) * up)) / 2


def test_gains_of_the_users(tmp_path: Path) -> None:
    results = pair()
    gain = np.sort(results.others[0].scores[METRIC] - results.baseline.scores[METRIC])
    (plot,) = plots(results, tmp_path, "Differences in")
    (line,), (zero,), (more,), (less,) = map(plot.of, ("line", "zero", "gain", "loss"))
    across, up = plot.points(line)
    shares = (np.arange(200) + 0.5) / 200
    off = np.abs(np.interp(shares, across, up) - gain) > 0.06 * plot.pixel[1]
    assert off.mean() < 0.15  # at steps alone
    near(plot.points(zero)[1], 0, plot.pixel[1])
    for shape, wanted in ((more, np.maximum(gain, 0)), (less, np.maximum(-gain, 0))):
        assert area(*plot.points(shape)) == pytest.approx(wanted.mean(), rel=0.05)
        assert np.sign(plot.points(shape)[1].sum()) == (1 if shape is more else -1)
    wins, ties, losses = (np.count_nonzero(np.sign(gain) == each) for each in (1, 0, -1))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (bar,) = [each for each in svgs(page) if each.get("class") == "split"]
    widths = [float(each.get("width", "")) + 2 for each in bar.iter("rect")]
    np.testing.assert_allclose(widths, [920 * each / 200 for each in (wins, ties, losses)])


def test_mean_gains_by_quarters_of_the_users(tmp_path: Path) -> None:
    results = compare([make("iALS"), make("SAFER2", seed=2)], resamples=20)
    users = results.baseline.users
    gain = results.others[0].scores[METRIC] - results.baseline.scores[METRIC]
    for label, values in (("items in the", users.history_length), ("popularity", users.popularity)):
        (plot,) = plots(results, tmp_path, f"Mean difference by {label}")
        quarters = np.array_split(np.argsort(values, kind="stable"), 4)
        bars = list(plot.svg.iter("rect"))
        whiskers = [plot.points(each) for each in plot.of("whisker")]
        assert len(bars) == len(whiskers) == 4
        for place, (bar, (x, ends), inside) in enumerate(
            zip(bars, whiskers, quarters, strict=True)
        ):
            mean, error = gain[inside].mean(), 1.96 * gain[inside].std(ddof=1) / 50**0.5
            top, height = float(bar.get("y", "")), float(bar.get("height", ""))
            near(sorted(plot.y([top, top + height])), sorted([0, mean]), 2 * plot.pixel[1])
            assert (bar.get("class") == "gain") == (mean >= 0)
            near(sorted(ends), [mean - error, mean + error], 2 * plot.pixel[1])
            near(x, place + 0.5, plot.pixel[0])


def test_losses_and_their_tail(tmp_path: Path) -> None:
    model = make("SAFER2")
    assert model.losses is not None
    var, cvar = -value_at_risk(-model.losses, 0.3), -tail_mean(-model.losses, 0.3)
    for level, marks in ((0.3, [cvar, var]), (1.0, [model.losses.mean()])):
        (plot,) = plots(model, tmp_path, "Losses of", level=level)
        low, high = map(float, plot.svg.get("data-x", "").split()[:2])
        counts, edges = np.histogram(np.maximum(model.losses, low), 36, (low, high))
        near([plot.points(each)[0][0] for each in plot.of("mark")], marks, plot.pixel[0])
        drawn = dict.fromkeys(range(36), 0.0)
        for bar in plot.of("bar"):
            x, y, across = (float(bar.get(key, "")) for key in ("x", "y", "width"))
            start, end = plot.x(x), plot.x(x + across)
            place = int(np.searchsorted(edges, (start + end) / 2)) - 1
            near(plot.y(y), counts[place], 2 * plot.pixel[1])
            drawn[place] += across
            if level < 1 and "quiet" not in bar.get("class", ""):
                assert start > var - 0.2 * plot.pixel[0]
            else:
                assert level == 1 or end < var + 0.2 * plot.pixel[0]
        widths = [across for place, across in drawn.items() if counts[place]]
        near(widths, (edges[1] - edges[0]) / plot.pixel[0] - 0.6, 3)


def test_the_worst_off_beside_the_others(tmp_path: Path) -> None:
    results = pair()
    labels = {
        "items in the history of": "history_length",
        "popularity of their items of": "popularity",
        "held-out items of": "target_count",
    }
    for label, name in labels.items():
        (plot,) = plots(results, tmp_path, label)
        wanted = [
            spread
            for each in (results.baseline, *results.others)
            for spread in tail_profile(each, METRIC, 0.3).properties[name]
        ]
        drawn = plot.of("spread")
        assert [each.get("class") for each in drawn] == ["spread inside", "spread outside"] * 2
        for group, each in zip(drawn, wanted, strict=True):
            thin, thick, dot = map(plot.points, group)
            near(thin[0], [each.q10, each.q90], plot.pixel[0])
            near(thick[0], [each.q25, each.q75], plot.pixel[0])
            near(dot[0], each.median, plot.pixel[0])


def test_risks_of_groups(tmp_path: Path) -> None:
    results = pair(groups=GROUPS)
    for plot in plots(results, tmp_path, "Share of each group"):
        (mark,) = plot.of("mark")
        near(plot.points(mark)[0], 1, plot.pixel[0])
        rows = [each.text for each in plot.of("row-name")]
        found: dict[str, list[float]] = {}
        for group in [each for each in plot.svg.iter("g") if each.find("use") is not None]:
            found.setdefault(group.get("class", ""), []).append(plot.points(group[0])[0])
        for style, model in (("s0", results.baseline), ("s1", results.others[0])):
            profile = tail_profile(model, METRIC, 0.3)
            everybody = profile.inside / (profile.inside + profile.outside)
            for name, risk in zip(rows, found[style], strict=True):
                if label := re.fullmatch(r"group (\d)", name or ""):
                    near(risk, profile.groups[int(label[1])][2] / everybody, plot.pixel[0])


def test_values_by_epoch(tmp_path: Path) -> None:
    epochs = history(12)
    model = make("SAFER2")
    for label, key in (("Objective of", "objective"), ("Change per epoch", "residual_users")):
        (plot,) = plots(model, tmp_path, label)
        x, y = plot.points(plot.of("line")[0])
        near(x, range(1, 13), plot.pixel[0])
        wanted = np.array([each[key] for each in epochs])
        np.testing.assert_allclose(y, wanted, rtol=0.003)


def test_lifts_of_every_split(tmp_path: Path) -> None:
    results = repeated(users=100)
    for plot in plots(results, tmp_path, "better on 3"):
        (mark,) = plot.of("mark")
        near(plot.points(mark)[0], 0, plot.pixel[0])
        found = [plot.points(each)[0] for each in plot.svg.iter("use")]
        lifts = [results.difference("SAFER2", METRIC, level).split_lifts for level in (0.3, 1.0)]
        near(found, np.concatenate(lifts), plot.pixel[0])
