"""`safecf demo`: its files, and what its settings show about the worst-off users."""

import json

import numpy as np
import pytest

from safecf.cli.demo import HELDOUT, SETTINGS
from safecf.data.datasets.synthetic import synthetic
from safecf.data.splits.strong_generalization import strong_generalization
from safecf.measures.metrics import recall
from safecf.measures.tails import tail_mean
from safecf.models.recommender import MODELS


def test_the_demo_checks_its_folder_first(run, tmp_path):
    (tmp_path / "file").touch()
    code, out, err = run("demo", "--out", tmp_path / "file")
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'file'} is a file; choose another place" in err


def test_the_demo_shows_a_tail_gain(run, tmp_path):
    code, out, _ = run("demo", "--out", tmp_path / "demo")
    assert code == 0
    assert "SAFER2 lifts the worst-off 30 % by" in " ".join(out.split())
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    lift = next(
        each
        for each in results["differences"]["SAFER2"]["recall@20"]
        if each["level"] == pytest.approx(0.3)
    )
    assert lift["absolute"][1] > 0  # the lower end of the interval
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


def test_safer2_serves_rare_tastes_better():
    """Mean and tail of recall@20 of new users, and the mean of those with the rarest tastes."""
    found = {name: [] for name in SETTINGS}
    for seed in range(3):
        drawn = synthetic("demo", seed=seed)
        users, items = drawn.matrix.nonzero()
        split = strong_generalization(users, items, heldout=HELDOUT, groups=drawn.group)
        for name, settings in SETTINGS.items():
            model = MODELS[name](random_state=seed, **settings).fit(split.train, False)
            history = split.test.history
            ranked, _ = model.recommend(np.arange(HELDOUT), history, N=20, recalculate_user=True)
            scores = recall(ranked, split.test.target, 20)
            rare = scores[split.test.groups >= 10]
            found[name].append([np.nanmean(scores), tail_mean(scores, 0.3), np.nanmean(rare)])
    average = {name: np.mean(rows, axis=0) for name, rows in found.items()}
    # over ten seeds: tail +22 % and +10 %, mean +3.8 % and +2.7 %
    for other in ("IALS", "ERMMF"):
        mean, tail, rare = average["SAFER2"] / average[other] - 1
        assert tail > 0.05
        assert mean > 0
        assert rare > 0.03
    assert average["IALS"][2] < 0.8 * average["IALS"][0]
