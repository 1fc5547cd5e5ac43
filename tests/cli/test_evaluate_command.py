"""`safecf evaluate` and `safecf compare`, as they are typed."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from safecf import IALS, SAFER2, Evaluation, Interactions, datasets
from safecf.cli.inputs import make_model, name_models
from safecf.cli.results import choose_metric

SMALL = "factors=4,iterations=3"
COLUMNS = ("--user", "visitor", "--item", "page")


def row_of(output, model):
    """Return the numbers of a model in the printed table."""
    return next(line for line in output.splitlines() if f"│ {model}" in line).split("│")[2:]


def test_compare_writes_what_it_prints(run, clicks, tmp_path):
    files = "--report", tmp_path / "new" / "report.html", "--out", tmp_path / "results.json"
    models = "-m", f"ials:{SMALL}", "-m", f"safer2:{SMALL},bandwidth=0.3"
    code, out, err = run("compare", clicks, *models, *COLUMNS, "--heldout", 50, "-q", *files)
    assert (code, err) == (0, "")
    results = json.loads((tmp_path / "results.json").read_text())
    evaluations = [Evaluation.from_dict(record) for record in results["evaluations"]]
    assert [each.model for each in evaluations] == ["IALS", "SAFER2"]
    for each in evaluations:
        for level in (1.0, 0.3):
            assert f"{each.tail('recall@20', level):.4f}" in out
        assert each.training["params"]["factors"] == 4
        assert each.settings["seed of the split"] == 98765
        assert each.settings["command"].startswith("safecf compare ")
    assert "SAFER2" in (tmp_path / "new" / "report.html").read_text()


@pytest.mark.parametrize("metric", ["auc", "ndcg", "log_rank"])
def test_metrics_over_the_whole_ranking_are_shown(run, clicks, tmp_path, metric):
    models, file = ("-m", f"ials:{SMALL}", "-m", f"ermmf:{SMALL}"), tmp_path / "results.json"
    common = (*COLUMNS, "--heldout", 50, "-q")
    code, out, err = run("compare", clicks, *models, *common, "--metric", metric, "--out", file)
    assert (code, err) == (0, "")
    for record in json.loads(file.read_text())["evaluations"]:
        assert f"{Evaluation.from_dict(record).tail(metric, 0.3):.4f}" in out
    assert f"({metric}, compared with IALS)" in " ".join(out.split())


@pytest.mark.parametrize("models", [["ials"], ["ials", "ermmf"]])
def test_a_tail_of_zeros_is_told(run, clicks, tmp_path, models):
    """The tail of the first recommendation alone is zero."""
    given = [part for model in models for part in ("-m", f"{model}:{SMALL}")]
    command = "evaluate" if len(models) == 1 else "compare"
    files = "--out", tmp_path / "results.json", "--report", tmp_path / "report.html"
    common = (*COLUMNS, "--heldout", 50, "-q", "--metric", "hit@1", *files)
    code, out, err = run(command, clicks, *given, *common)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "hit@1 is 0 for all of the worst-off 30 %, whatever the model; ndcg, over the" in said
    record = json.loads((tmp_path / "results.json").read_text())
    for each in record.get("evaluations", [record]):
        assert f"{Evaluation.from_dict(each).tail('ndcg', 0.3):.4f}" in out
    assert "whatever the model; ndcg, over the" in (tmp_path / "report.html").read_text()


def test_a_saved_model_is_evaluated_by_item_ids(run, clicks, tmp_path):
    split = datasets.read(clicks, user="visitor", item="page").strong_generalization(heldout=50)
    model = IALS(4, iterations=3, random_state=0).fit(split.training, show_progress=False)
    model.save(tmp_path / "mine.safetensors")
    table = pyarrow.parquet.read_table(clicks)
    order = np.random.default_rng(0).permutation(len(table))
    pyarrow.parquet.write_table(table.take(order), tmp_path / "shuffled.parquet")
    fresh = Interactions.from_parquet(tmp_path / "shuffled.parquet", user="visitor", item="page")
    everything = IALS(4, iterations=3, random_state=0).fit(fresh, show_progress=False)
    everything.save(tmp_path / "everything.safetensors")

    common = (*COLUMNS, "--heldout", 50, "-q")
    saved = run("evaluate", clicks, "-m", tmp_path / "mine.safetensors", *common)
    trained = run("evaluate", clicks, "-m", f"ials:{SMALL}", *common)
    assert saved[0] == trained[0] == 0
    assert row_of(trained[1], "IALS") == row_of(saved[1], "IALS")
    code, _, err = run("evaluate", clicks, "-m", tmp_path / "mine", *common)
    assert (code, err.endswith(f"for the file, give {tmp_path}/mine.safetensors\n")) == (2, True)
    code, out, err = run("evaluate", clicks, "-m", tmp_path / "everything.safetensors", *common)
    assert code == 0
    assert err.startswith("safecf: warning: the model was trained on 50 of the 50 test users")
    score = [float(row_of(text, "IALS")[0].split()[0]) for text in (out, trained[1])]
    assert score[0] > 0.9 * score[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demi", "-m", "ials"], "did you mean 'demo'"),
        (["demo", "-m", "safer"], "did you mean 'safer2'"),
        (["demo", "-m", "ials:factor=3"], "did you mean 'factors'"),
        (["demo", "-m", "ials:factors"], "no option=value"),
        (["demo", "-m", "./nosuch.safetensors"], "nosuch.safetensors: there is no such file, seen"),
        (["demo", "-m", "ials:factors=4, factors=5"], "factors is given twice; leave one of them"),
        (["demo", "-m", "1" * 5000], "unknown model '111"),
        (["1" * 5000, "-m", "ials"], "unknown data set or file '111"),
        (["ml-1m", "--path", "nowhere", "-m", "ials"], "nowhere"),
        (["demo", "-m", "ials", "--path", "x"], "--path does not apply to the synthetic data"),
        (["ml-1m", "-m", "ials", "--separator", ";"], "--separator does not apply to the data"),
        (["ml-1m", "-m", "ials", "--user", "foo"], "--user does not apply to the data set ml-1m"),
        (["x.csv", "-m", "ials", "--path", "x"], "--path is for ml-1m, ml-20m, msd; give"),
        (["x.csv", "-m", "ials", "--min-rating", "4"], "try --rating 'rating'"),
        (["demo", "-m", "ials", "--heldout", "0"], "heldout 0; hold out at least 1"),
        (["demo", "-m", "ials", "--split", "time"], "known are 'strong', 'holdout', 'temporal'"),
        (["demo", "-m", "ials", "--split", "temporal"], "no times; read it with --timestamp"),
        (["demo", "-m", "ials", "--cutoff", "5"], "--cutoff does not apply to --split strong"),
        (["demo", "-m", "ials", "--min-user-interactions", "0"], "has to be at least 1"),
    ],
)
def test_user_errors_are_one_line(run, arguments, message):
    code, out, err = run("evaluate", *arguments, "--quiet")
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "ials:factors=0"], "factors=0"),
        (["-m", "ials", "-m", "safer2:kernel=round"], "unknown kernel 'round'"),
        (["-m", "ials", "--metric", "recal"], "did you mean 'recall'? known are 'recall', 'ndcg'"),
        (["-m", "ials", "--metric", "recall@x"], "'x' is no cutoff; try --metric 'recall@20'"),
        (["-m", "ials", "--k", "0"], "--k 0 has to be at least 1"),
        (["-m", "ials", "--tail", "30"], "--tail 30 has to be a share of users"),
        (["-m", "ials", "--tail", "0"], "--tail 0 has to be a share of users"),
        (["-m", "ials", "--tail", "nan"], "--tail nan has to be a share of users"),
        (["-m", "ials", "--split", "time"], "unknown --split 'time'"),
        (["-m", "ials", "--seed", "-1"], "--seed -1 has to be at least 0; try --seed 0"),
        (["-m", "ials", "--split-seed", "-1"], "--split-seed -1 has to be at least 0"),
        (["-m", "ials", "--report", "/proc/a.html"], "cannot write /proc/a.html"),
        (["-m", "ials", "--out", "{file}/a.json"], "is a file; choose another place"),
        (["-m", "ials", "--out", "{folder}"], "is a folder; name the file to write"),
    ],
)
def test_arguments_are_checked_before_any_work(run, monkeypatch, tmp_path, arguments, message):
    def fail(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr("safecf.cli.inputs.load_data", fail)
    (tmp_path / "file").touch()
    places = {"file": tmp_path / "file", "folder": tmp_path}
    code, _, err = run("evaluate", "demo", *(each.format(**places) for each in arguments))
    assert code == 2
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_model_cannot_be_compared(run, clicks):
    code, _, err = run("compare", clicks, "-m", "ials", *COLUMNS)
    assert code == 2
    assert "add another one with -m, or use safecf evaluate" in err


def test_ratings_times_groups_and_metrics(run, clicks, tmp_path):
    common = (*COLUMNS, "-m", f"ials:{SMALL}", "-q", "--out", tmp_path / "results.json")

    def evaluated(*options):
        code, out, err = run("evaluate", clicks, *common, *options)
        assert (code, err) == (0, "")
        return Evaluation.from_dict(json.loads((tmp_path / "results.json").read_text())), out

    liked, out = evaluated("--rating", "stars", "--min-rating", 4, "--k", 5, "--k", 10)
    assert liked.k == (5, 10)
    assert "recall@5 of" in out
    log = datasets.read(clicks, user="visitor", item="page", rating="stars", min_rating=4)
    split = log.strong_generalization()
    assert liked.users.target_count.tolist() == split.test.target.getnnz(axis=1).tolist()

    late, out = evaluated("--timestamp", "time", "--split", "temporal", "--cutoff", "1970-05-01")
    log = datasets.read(clicks, user="visitor", item="page", timestamp="time")
    split = log.temporal(cutoff=120 * 24 * 3600)
    assert late.users.target_count.tolist() == split.test.target.getnnz(axis=1).tolist()
    assert late.settings["cutoff"] == "1970-05-01"

    half, out = evaluated(
        "--split", "holdout", "--share", 0.5, "--group", "team", "--metric", "mrr"
    )
    assert "mrr@20 of 300 test users" in out
    assert set(half.users.group.tolist()) == {"team 0", "team 1"}


def test_several_text_files_by_position(run, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        pairs = rng.integers(40, size=(400, 2))
        lines = [f"{user};{item};{1 + user % 3}\n" for user, item in pairs]
        (tmp_path / f"{name}.csv").write_text("".join(lines))
    given = (tmp_path / "a.csv", tmp_path / "b.csv", "--separator", ";", "--no-header")
    given += ("--user", 0, "--item", 1, "--weight", 2, "--duplicates", "max")
    code, _, err = run("evaluate", *given, "-m", f"ials:{SMALL}", "-q")
    assert (code, err) == (0, "")
    code, _, err = run("evaluate", *given[:-1], "error", "-m", f"ials:{SMALL}", "-q")
    assert code == 2
    assert "rows repeat an earlier one, such as user" in err
    assert "choose --duplicates 'sum'" in err


def test_metrics_and_cutoffs():
    assert choose_metric(None, None) == ("recall@20", (20, 50, 100))
    assert choose_metric("ndcg@10", None) == ("ndcg@10", (10, 20, 50, 100))
    assert choose_metric("recall", [5, 10]) == ("recall@5", (5, 10))
    assert choose_metric("ndcg", [5, 10]) == ("ndcg", (5, 10))
    assert choose_metric("auc", None) == ("auc", (20, 50, 100))
    with pytest.raises(ValueError, match="auc has no cutoff; try metric='auc'"):
        choose_metric("auc@5", None)
    assert choose_metric("ndcg@20", [5]) == ("ndcg@20", (5, 20))


def test_models_are_made_from_text():
    name, model = make_model("safer2:factors=8,kernel=logistic,bandwidth=inf", 3)
    assert name == "SAFER2"
    wanted = SAFER2(8, kernel="logistic", bandwidth=np.inf, random_state=3)
    assert model.get_params() == wanted.get_params()


@pytest.mark.parametrize(
    "value", ["{[]}", "-" * 5000 + "1", "1" + "+1" * 5000, "(" * 300, "9" * 5000, "\0"]
)
def test_what_is_no_value_of_python_is_a_text(value):
    with pytest.raises(TypeError, match=r"^factors='.*' has to be an integer; try factors=256"):
        make_model(f"safer2:factors={value}")


def test_models_of_one_class_have_different_names():
    names = name_models(["ials:factors=8", "ials:factors=9", "safer2", "ials:factors=9"], 0)
    assert list(names) == [
        "IALS (factors=8)", "IALS (factors=9)", "SAFER2", "IALS (factors=9) #2",
    ]  # fmt: skip
