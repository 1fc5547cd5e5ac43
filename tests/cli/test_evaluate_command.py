"""`safecf evaluate`, `compare` and `demo`, as a person would call them."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import IALS, SAFER2, Evaluation, cli
from safecf.cli.sources import load_split, make_model
from safecf.data.synthetic import synthetic

SMALL = "factors=4,iterations=3"


@pytest.fixture
def clicks(tmp_path):
    pairs = synthetic(300, 80, 6000, tastes=3).matrix.tocoo()
    table = pa.table({"visitor": pairs.row, "page": [f"page {item}" for item in pairs.col]})
    pyarrow.parquet.write_table(table, tmp_path / "clicks.parquet")
    return tmp_path / "clicks.parquet"


def run(monkeypatch, capsys, *arguments):
    """Return the exit code, and what was written to stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["safecf", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code or 0, *capsys.readouterr()


def test_compare_writes_what_it_prints(monkeypatch, capsys, clicks, tmp_path):
    files = "--report", tmp_path / "new" / "report.html", "--out", tmp_path / "results.json"
    columns = "--user", "visitor", "--item", "page", "--heldout", 50, "--quiet"
    models = "-m", f"ials:{SMALL}", "-m", f"safer2:{SMALL},bandwidth=0.3"
    code, out, err = run(monkeypatch, capsys, "compare", clicks, *models, *columns, *files)
    assert (code, err) == (0, "")
    results = json.loads((tmp_path / "results.json").read_text())
    evaluations = [Evaluation.from_dict(record) for record in results["evaluations"]]
    assert [each.model for each in evaluations] == ["IALS", "SAFER2"]
    for each in evaluations:
        for level in (1.0, 0.3):
            assert f"{each.tail('recall@20', level):.4f}" in out
        assert each.training["params"]["factors"] == 4
    assert "SAFER2" in (tmp_path / "new" / "report.html").read_text()


def test_evaluate_takes_a_saved_model(monkeypatch, capsys, clicks, tmp_path):
    split = load_split(str(clicks), user="visitor", item="page", heldout=50)
    model = IALS(4, iterations=3, random_state=0).fit(split.train, show_progress=False)
    model.save(tmp_path / "mine.safetensors")
    columns = "--user", "visitor", "--item", "page", "--heldout", 50
    saved = run(
        monkeypatch, capsys, "evaluate", clicks, "-m", tmp_path / "mine.safetensors", *columns
    )
    trained = run(monkeypatch, capsys, "evaluate", clicks, "-m", f"ials:{SMALL}", *columns, "-q")
    assert saved[0] == trained[0] == 0
    row = next(line for line in trained[1].splitlines() if "IALS" in line).split("│")[2:]
    assert row == next(line for line in saved[1].splitlines() if "IALS" in line).split("│")[2:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demi", "-m", "ials"], "did you mean 'demo'"),
        (["demo", "-m", "safer"], "did you mean 'safer2'"),
        (["demo", "-m", "ials:factor=3"], "did you mean 'factors'"),
        (["demo", "-m", "ials:factors"], "no option=value"),
        (["demo", "-m", "ials:factors=0"], "factors=0"),
        (["demo", "-m", "nowhere.safetensors"], "nowhere.safetensors"),
        (["ml-1m", "--path", "nowhere", "-m", "ials"], "nowhere"),
    ],
)
def test_what_the_user_can_mend_is_one_line(monkeypatch, capsys, arguments, message):
    code, out, err = run(monkeypatch, capsys, "evaluate", *arguments, "--quiet")
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1


def test_models_are_made_from_text():
    name, model = make_model("safer2:factors=8,kernel=logistic,bandwidth=inf", 3)
    assert name == "SAFER2"
    wanted = SAFER2(8, kernel="logistic", bandwidth=np.inf, random_state=3)
    assert model.get_params() == wanted.get_params()


def test_the_demo_shows_a_tail_gain(monkeypatch, capsys, tmp_path):
    code, out, _ = run(monkeypatch, capsys, "demo", "--out", tmp_path / "demo")
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
