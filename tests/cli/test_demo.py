"""`safecf demo`: its files, how typical it is, and what the defaults do for the worst-off."""

import json
from pathlib import Path

import numpy as np

from safecf.cli.demo import DATA_SEED, TYPICAL, make_models, make_split
from safecf.evaluation import Comparison, evaluate

PAGE = Path(__file__).parents[2] / "docs" / "results" / "demo.md"


def test_the_demo_checks_its_folder_first(run, tmp_path):
    (tmp_path / "file").touch()
    code, out, err = run("demo", "--out", tmp_path / "file")
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'file'} is a file; choose another place" in err


def test_the_demo_shows_its_verdict_and_how_typical_it_is(run, tmp_path):
    code, out, _ = run("demo", "--out", tmp_path / "demo")
    assert code == 0
    shown = " ".join(out.split())
    found = Comparison.from_dict(json.loads((tmp_path / "demo" / "results.json").read_text()))
    assert [each.model for each in found.others] == ["ERM-MF", "SAFER2"]
    assert found.verdict("SAFER2") in shown
    assert TYPICAL in shown
    page = (tmp_path / "demo" / "report.html").read_text()
    assert TYPICAL in page
    assert found.verdict("SAFER2") in page


def test_the_demo_says_what_its_page_says():
    text = PAGE.read_text()
    assert TYPICAL in text
    assert f"draws its users with the data seed {DATA_SEED}." in text


def test_all_models_have_their_defaults():
    for model in make_models(3).values():
        assert repr(model) == f"{type(model).__name__}(random_state=3)"


def test_safer2_serves_new_users_better_above_all_the_worst_off():
    """Mean and tail of recall@20, summed over three data seeds."""
    found = {name: np.zeros(2) for name in make_models(0)}
    for seed in range(3):
        split = make_split(seed)
        for name, model in make_models(0).items():
            scores = evaluate(model.fit(split.training, False), split, (20,), metrics=("recall",))
            found[name] += scores.mean("recall@20"), scores.tail("recall@20", 0.3)
    for other in ("iALS", "ERM-MF"):
        mean, tail = found["SAFER2"] / found[other]
        assert tail > mean > 1
