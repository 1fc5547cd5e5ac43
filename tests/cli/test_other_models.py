"""The commands also work with models that are not trained by ALS."""

import json

import pytest

from safecf import EASE, Evaluation, Recommender, datasets

COLUMNS = ("--user", "visitor", "--item", "page", "--heldout", 50, "--quiet")


def test_compare(run, clicks, tmp_path):
    pytest.importorskip("torch", reason="MultVAE trains with torch")
    files = "--report", tmp_path / "report.html", "--out", tmp_path / "results.json"
    models = (
        *("-m", "ials:factors=4,iterations=3"),
        *("-m", "ease:regularization=20"),
        *("-m", "multvae:factors=4,iterations=3,batch_size=50,device=cpu"),
    )
    code, _, err = run("compare", clicks, *models, *COLUMNS, *files)
    assert (code, err) == (0, "")
    results = json.loads((tmp_path / "results.json").read_text())
    evaluations = [Evaluation.from_dict(record) for record in results["evaluations"]]
    assert [each.model for each in evaluations] == ["IALS", "EASE", "MultVAE"]
    _, ease, vae = evaluations
    assert ease.training["params"] == EASE(20).get_params()
    assert len(vae.training["history"]) == 3
    for each in (ease, vae):
        assert 0 < each.tail("recall@20", 0.3) < each.tail("recall@20", 1.0) < 1
    page = (tmp_path / "report.html").read_text()
    assert "EASE" in page
    assert "MultVAE" in page


def test_saved_models_are_not_trained_again(run, clicks, tmp_path, monkeypatch):
    log = datasets.read(clicks, user="visitor", item="page")
    split = log.strong_generalization(heldout=50)
    EASE(20).fit(split.training, show_progress=False).save(tmp_path / "mine.safetensors")
    monkeypatch.setattr(EASE, "fit", None)
    code, out, err = run("evaluate", clicks, "-m", tmp_path / "mine.safetensors", *COLUMNS)
    assert (code, err) == (0, "")
    assert "EASE (mine)" in out
    assert Recommender.load(tmp_path / "mine").regularization == 20
