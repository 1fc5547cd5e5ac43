"""Experiments on time and convergence: the records of their cells, and the curves from them."""

import csv

import numpy as np
import pytest

import reproduction
from reproduction import curves, data, presets, variants
from reproduction.base import Cell, Options, Result
from reproduction.experiments import bandwidth, dimensions, runtime, sampling, walltime, xi_steps
from reproduction.profiles import MEASURES, Claim, quality_columns
from reproduction.tasks.course import course
from reproduction.tasks.quality import make_model, quality
from safecf.measures.tails import tail_mean
from safecf.models.presets import Preset

pytest.importorskip("matplotlib", reason="experiments draw figures")
LIKE = "ml-20m-like"


def preset(name="SAFER2", **options) -> Preset:
    found = presets.load("tiny", "paper")[name]
    return Preset(name, found.model, {**found.options, **options}, "")


def ran(cell: Cell) -> Result:
    return Result(cell.settings, cell.run(cell.settings))


def text_and_rows(page):
    """Return the page and the rows of the CSV file."""
    with page.with_suffix(".csv").open() as file:
        return page.read_text(), list(csv.DictReader(file))


@pytest.fixture
def small_shape(monkeypatch):
    """Give a synthetic shape the size of tiny data, and few factors."""
    monkeypatch.setitem(dimensions.GRIDS, LIKE, dimensions.GRIDS["tiny"]._replace(which="paper"))
    for known in (data.RECIPES, data.HELDOUT):
        monkeypatch.setitem(known, LIKE, known["tiny"])
    data.load_log.cache_clear()
    data.load_split.cache_clear()
    whole = presets.require

    def require(name, *others):
        return [
            Preset(each.name, each.model, {**each.options, "factors": 4}, each.found)
            for each in whole(name, *others)
        ]

    monkeypatch.setattr("reproduction.presets.require", require)
    yield
    data.load_log.cache_clear()
    data.load_split.cache_clear()


def test_records_are_the_history_of_the_model():
    cell = curves.cell(preset(iterations=4), "tiny")
    found = ran(cell)
    model = make_model(cell.settings)
    model.fit(data.load_split("tiny").train, show_progress=False)
    for name in curves.HISTORY:
        kept = curves.history(found, name).values
        np.testing.assert_array_equal(kept, [getattr(each, name) for each in model.history])
    assert set(found.record["seconds"]) == set(model.history[0].seconds) <= set(runtime.STEPS)
    assert len(curves.seconds(found)) == 4
    assert all(np.diff(curves.history(found, "objective").seconds) > 0)


def test_recalls_are_those_of_shorter_runs():
    found = ran(curves.cell(preset(iterations=3), "tiny"))
    assert found.record["looks"] == [1, 2, 3]
    for epochs in (1, 3):
        settings = curves.cell(preset(iterations=epochs), "tiny").settings
        alone = quality(settings)
        for column in [("recall@20", 1.0), ("recall@50", 0.3)]:
            value = curves.recall([found], column).values[epochs - 1]
            assert value == tail_mean(alone[column[0]], column[1])


def test_without_looks_nobody_is_scored(monkeypatch):
    monkeypatch.setattr("reproduction.tasks.course.evaluate", None)
    found = ran(curves.cell(preset(), "tiny", scored=False))
    assert found.record["looks"] == []
    assert "recall" not in "".join(curves.rows({}, found)[0])


def test_looks_are_at_every_epoch_and_then_at_every_tenth():
    looks = curves.cell(preset("CVaR-MF", iterations=75), "tiny").settings["looks"]
    assert looks == [*range(1, 51), 60, 70]


def test_mult_vae_has_seconds_and_recalls_too():
    pytest.importorskip("torch")
    found = ran(curves.cell(preset("Mult-VAE"), "tiny"))
    assert curves.rows({}, found)[0]["residual_users"] is None
    assert curves.median_seconds(found) > 0
    assert set(found.record["seconds"]) <= set(runtime.STEPS)
    assert len(curves.recall([found], ("recall@20", 1.0)).values) == 2


def result(seconds, values, looks=None):
    recalls = [{"metric": "recall@20", "level": 1.0, "values": values}]
    looks = looks or list(range(1, len(values) + 1))
    record = {"seconds": {"a": seconds, "b": seconds}, "looks": looks, "recalls": recalls}
    return Result({"seed": 0}, record)


def test_curves_are_means_over_seeds_up_to_the_first_end():
    runs = [result([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]), result([2.0, 2.0], [0.3, 0.4])]
    found = curves.recall(runs, ("recall@20", 1.0))
    assert found.epochs == [1, 2]
    np.testing.assert_allclose(found.seconds, [3, 7])
    np.testing.assert_allclose(found.values, [0.2, 0.3])
    last = curves.last(runs, ("recall@20", 1.0), 2)
    np.testing.assert_allclose(last, [[0.2, 0.3], [0.3, 0.4]])
    assert curves.median_seconds(runs[0], 1) == 5


def test_convergence_is_the_first_value_near_the_best():
    found = curves.recall([result([1.0] * 4, [0.1, 0.398, 0.4, 0.3])], ("recall@20", 1.0))
    assert found.epochs[found.converged] == 2


def test_seconds_of_a_look_are_those_of_its_epoch():
    found = curves.recall([result([1.0] * 20, [0.1, 0.2], [10, 20])], ("recall@20", 1.0))
    np.testing.assert_allclose(found.seconds, [20, 40])


@pytest.mark.parametrize(
    "change",
    [variants.exact, variants.cg, lambda each: variants.blockwise(each, 2), lambda each: each],
)
def test_solvers_of_safer2_lower_the_same_objective(change):
    found = ran(curves.cell(change(preset(iterations=8, bandwidth=0.5)), "tiny", scored=False))
    objective = curves.history(found, "objective").values
    assert all(np.diff(objective[1:]) < 1e-4)
    exact = ran(curves.cell(variants.exact(preset(iterations=8, bandwidth=0.5)), "tiny"))
    assert objective[-1] == pytest.approx(curves.history(exact, "objective").values[-1], rel=0.05)


def test_a_huge_bandwidth_leaves_the_weights_alone():
    cells = dict(bandwidth.PROFILE.plan(Options("tiny", seeds=1)))
    assert [each.settings["options"]["bandwidth"] for each in cells.values()] == [
        *bandwidth.BANDWIDTHS
    ]
    found = ran(cells["h = 1e16"])
    assert curves.history(found, "residual_weights").values.max() < 1e-9
    assert curves.history(ran(cells["h = 0.18"]), "residual_weights").values.max() > 1e-3


def test_what_is_timed_never_comes_from_a_busy_machine():
    for name in reproduction.NAMES:
        experiment = reproduction.load(name)
        for cell in experiment.cells(Options("tiny")):
            assert cell.settings.get("alone", False) == experiment.alone


def test_xi_steps_varies_steps_and_users():
    plan = xi_steps.PROFILE.plan(Options("tiny", seeds=2))
    assert len(plan) == 2 * len(xi_steps.STEPS) * len(xi_steps.SHARES)
    assert set(xi_steps.PROFILE.drawn) < {name for name, _ in plan}


def test_claims_are_judged_over_seeds():
    def curve(shift, *noise):
        starts = [[shift + each, shift + each] for each in noise]
        return [
            Result({}, {"looks": [1, 2], "seconds": {"users": [1.0, 1.0]}, "recalls": recalls})
            for recalls in (
                [{"metric": "recall@20", "level": 1.0, "values": values}] for values in starts
            )
        ]

    found = {"low": curve(0.2, 0, 0.01, 0.02), "high": curve(0.3, 0, 0.02, 0.01)}
    columns = quality_columns("ml-1m")
    judged = {
        (first, relation): Claim("it is so", "recall", first, second, relation).line(found, columns)
        for first, second in (("high", "low"), ("low", "high"))
        for relation in (">", "=")
    }
    assert judged["high", ">"][2:] == ["+0.1 ± 0.006", "seen"]
    assert judged["low", ">"][3] == "the opposite"
    assert judged["low", "="][3] == "not seen"
    close = Claim("it is so", "recall", "low", "high", "=")
    assert close.verdict(0.001, 0.0005, 0.3) == "seen"
    assert close.verdict(0.001, 0.002, 0.3) == "not told apart"
    one = {name: runs[:1] for name, runs in found.items()}
    assert close.line(one, columns)[2:] == ["-0.1", "not told by one start"]


@pytest.mark.parametrize("profile", [bandwidth.PROFILE, sampling.PROFILE, xi_steps.PROFILE])
def test_claims_are_about_curves_that_there_are(profile):
    for claim in profile.claims:
        assert {claim.first, claim.second} <= set(profile.changes)
        assert claim.measure in MEASURES


def test_quality_is_measured_as_in_the_paper():
    assert quality_columns("ml-1m") == [("recall@20", 1.0), ("recall@20", 0.3)]
    assert quality_columns("ml-20m") == [("recall@50", 1.0), ("recall@50", 0.3)]


@pytest.mark.parametrize("name", ["runtime", "walltime", "dimensions"])
@pytest.mark.filterwarnings("ignore")
def test_synthetic_shapes_have_no_quality(name, render, small_shape):
    text, rows = text_and_rows(render(name, Options(LIKE)))
    assert rows
    assert "recall" not in ",".join(rows[0])
    assert "R@" not in text
    assert "numbers mean nothing" not in text


@pytest.mark.filterwarnings("ignore")
def test_runtime_has_the_numbers_of_the_paper(render, small_shape):
    text, rows = text_and_rows(render("runtime", Options(LIKE)))
    lines = {tuple(line.split(" | ")[:2]): line for line in text.splitlines()}
    assert lines["| SAFER2", "exact"].endswith("| 3.45 |")
    assert lines["| CVaR-MF", "one step of Adam"].endswith("| 1.67 |")
    assert lines["| SAFER2", "spectral CG"].endswith("|  |")
    assert lines["| Mult-VAE", "Adam, by batches"].endswith("| 9.06 |")
    first = {row["model"]: row["counts"] for row in rows if row["epoch"] == "1"}
    assert {name for name, counts in first.items() if counts == "True"} == {"Mult-VAE"}
    assert set(first) == {
        *("iALS", "iALS++", "ERM-MF", "CVaR-MF", "SAFER2", "SAFER2-CG", "SAFER2++", "Mult-VAE")
    }


def test_what_takes_minutes_is_timed_once_or_left_out():
    known = runtime.models(Options("msd-like"))
    assert "ERM-MF, exact" not in known
    assert known["SAFER2, exact"].preset.options["iterations"] == 1
    assert known["SAFER2"].preset.options["iterations"] == runtime.WARM_UP + runtime.TIMED["msd"]
    assert known["SAFER2"].preset.options["factors"] == 512
    factors, solvers = zip(*dimensions.all_variants(Options(LIKE)), strict=True)
    assert set(factors) == {128, 256, 512, 1024}
    assert solvers.count(dimensions.EXACT) == 2


def test_losses_on_shapes_are_the_same_for_all():
    chosen = walltime.models(Options("msd-like"))
    for option in walltime.SAME:
        assert len({each.options[option] for each in chosen}) == 1
    assert {each.name for each in walltime.models(Options("ml-1m"))} == {
        *("iALS", "iALS++", "ERM-MF", "CVaR-MF", "CVaR-MF, Adam", "SAFER2", "SAFER2++", "Mult-VAE")
    }


def test_all_models_of_a_figure_have_different_styles():
    from reproduction.figures import line_style, line_styles  # noqa: PLC0415

    for name in ("ml-1m", "msd-like"):
        names = [each.name for each in walltime.models(Options(name))]
        styles = line_styles(names)
        assert len(set(styles.values())) == len(names)
        assert styles["SAFER2"] == line_style(0)


def test_a_course_takes_what_quality_takes():
    settings = curves.cell(preset(), "tiny").settings
    assert course(settings)["looks"] == [1, 2]
    assert settings["on"] == "validation"
