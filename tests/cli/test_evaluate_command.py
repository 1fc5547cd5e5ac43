"""`safecf evaluate` and `safecf compare`, as they are typed."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from safecf import EASE, IALS, Comparison, Evaluation, Interactions, compare, evaluate
from safecf.split import repeated_seeds
from tests.cli.conftest import COLUMNS, SMALL

SPLIT = (*COLUMNS, "--heldout", 50, "-q")
PAIR = ("-m", SMALL, "-m", "ease:regularization=20")


def row_of(output, model):
    """Return the numbers of a model in the printed table."""
    return next(line for line in output.splitlines() if f"│ {model}" in line).split("│")[2:]


def written(name="results.json"):
    return json.loads(Path(name).read_text())


def test_compare_writes_what_it_prints(done, clicks):
    pytest.importorskip("torch", reason="MultVAE trains with torch")
    files = "--report", "new/report.html", "--out", "results.json"
    models = (*PAIR, "-m", "multvae:factors=4,iterations=3,batch_size=50,device=cpu")
    out = done("compare", clicks, *models, *SPLIT, *files)
    evaluations = [Evaluation.from_dict(record) for record in written()["evaluations"]]
    assert [each.model for each in evaluations] == ["IALS", "EASE", "MultVAE"]
    for each in evaluations:
        for level in (1.0, 0.3):
            assert f"{each.tail('recall@20', level):.4f}" in out
        assert each.settings["seed of the split"] == 98765
        assert each.settings["command"].startswith("safecf compare ")
    assert evaluations[1].training["params"] == EASE(20).get_params()
    page = Path("new/report.html").read_text()
    assert all(name in page for name in ("EASE", "MultVAE"))


@pytest.mark.parametrize(
    ("given", "shown", "k"),
    [
        (("--metric", "auc"), "auc", (20, 50, 100)),
        (("--metric", "ndcg"), "ndcg", (20, 50, 100)),
        (("--metric", "ndcg@10"), "ndcg@10", (10, 20, 50, 100)),
        (("--metric", "recall", "--k", 5, "--k", 10), "recall@5", (5, 10)),
        (("--metric", "ndcg@20", "--k", 5), "ndcg@20", (5, 20)),
    ],
)
def test_the_metric_is_shown_at_its_cutoff(done, clicks, given, shown, k):
    out = done("compare", clicks, *PAIR, *SPLIT, *given, "--out", "results.json")
    for record in written()["evaluations"]:
        evaluation = Evaluation.from_dict(record)
        assert evaluation.k == k
        assert f"{evaluation.tail(shown, 0.3):.4f}" in out
    assert f"({shown}, compared with IALS)" in " ".join(out.split())


@pytest.mark.parametrize("models", [1, 2])
def test_a_tail_of_zeros_is_told(done, clicks, models):
    """The tail of the first recommendation alone is zero."""
    command, given = ("evaluate", PAIR[:2]) if models == 1 else ("compare", PAIR)
    files = "--out", "results.json", "--report", "report.html"
    out = done(command, clicks, *given, *SPLIT, "--metric", "hit@1", *files)
    said = " ".join(out.split())
    assert "hit@1 is 0 for all of the worst-off 30 %, whatever the model; ndcg, over the" in said
    for each in written().get("evaluations", [written()]):
        assert f"{Evaluation.from_dict(each).tail('ndcg', 0.3):.4f}" in out
    assert "whatever the model; ndcg, over the" in Path("report.html").read_text()


def test_a_saved_model_is_evaluated_by_item_ids(run, done, clicks, log, monkeypatch):
    split = log.strong_generalization(heldout=50)
    IALS(4, iterations=3, random_state=0).fit(split.training, show_progress=False).save("mine")
    table = pyarrow.parquet.read_table(clicks)
    order = np.random.default_rng(0).permutation(len(table))
    pyarrow.parquet.write_table(table.take(order), "shuffled.parquet")
    fresh = Interactions.from_parquet("shuffled.parquet", user="visitor", item="page")
    IALS(4, iterations=3, random_state=0).fit(fresh, show_progress=False).save("everything")
    trained = done("evaluate", clicks, "-m", SMALL, *SPLIT)
    monkeypatch.setattr(IALS, "fit", None)  # saved models are not trained again
    saved = done("evaluate", clicks, "-m", "mine.safetensors", *SPLIT)
    assert "IALS (mine)" in saved
    assert row_of(trained, "IALS") == row_of(saved, "IALS")
    code, out, err = run("evaluate", clicks, "-m", "everything.safetensors", *SPLIT)
    assert code == 0
    assert err.startswith("safecf: warning: the model was trained on 50 of the 50 test users")
    score = [float(row_of(text, "IALS")[0].split()[0]) for text in (out, trained)]
    assert score[0] > 0.9 * score[1]


def test_ratings_times_groups_and_metrics(done, clicks, log):
    def evaluated(*options):
        common = (*COLUMNS, "-m", SMALL, "-q", "--out", "results.json")
        return done("evaluate", clicks, *common, *options), Evaluation.from_dict(written())

    out, liked = evaluated("--rating", "stars", "--min-rating", 4)
    assert liked.num_users < 300
    assert "recall@20 of" in out
    _, late = evaluated("--timestamp", "time", "--split", "temporal", "--cutoff", "1970-05-01")
    assert late.settings["cutoff"] == "1970-05-01"
    assert late.num_users > 100
    out, half = evaluated(
        "--split", "holdout", "--share", 0.5, "--group", "team", "--metric", "mrr"
    )
    assert "mrr@20 of 300 test users" in out
    assert set(half.users.group.tolist()) == {"team 0", "team 1"}
    split = log.per_user_holdout(share=0.5)
    assert half.users.target_count.tolist() == split.test.target.getnnz(axis=1).tolist()


def test_several_text_files_by_position(run, done):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        pairs = rng.integers(40, size=(400, 2))
        lines = [f"{user};{item};{1 + user % 3}\n" for user, item in pairs]
        Path(f"{name}.csv").write_text("".join(lines))
    given = ("a.csv", "b.csv", "--separator", ";", "--no-header", "-m", SMALL, "-q")
    given += ("--user", 0, "--item", 1, "--weight", 2, "--duplicates")
    done("evaluate", *given, "max")
    code, _, err = run("evaluate", *given, "error")
    assert code == 2
    assert "rows repeat an earlier one, such as user" in err
    assert "choose --duplicates 'sum'" in err


# Several splits


def test_the_results_are_those_of_the_splits(run, clicks, log):
    files = "--report", "report.html", "--out", "results.json"
    given = (*COLUMNS, *PAIR, "--heldout", 40, "--repeats", 3)
    code, out, err = run("compare", clicks, *given, *files)
    assert code == 0
    assert [f"split {number} of 3" in err for number in range(1, 5)] == [True] * 3 + [False]
    by_model = [[], []]
    for seed in repeated_seeds(3):
        split = log.strong_generalization(heldout=40, seed=seed)
        models = IALS(4, iterations=3, random_state=0), EASE(20)
        for found, model in zip(by_model, models, strict=True):
            found.append(evaluate(model.fit(split.training, show_progress=False), split))
    expected, said = compare(by_model), " ".join(out.split())
    assert " ".join(expected.verdict("EASE").split()) in said
    assert f"mean over 3 splits ({expected.baseline.num_users:,} users)" in said
    won = [expected.difference("EASE", "recall@20", each).splits_won for each in (0.3, 1.0)]
    told = f"EASE is better on {won[0]} for the worst-off 30 % and {won[1]} for all users"
    assert f"Of 3 splits, {told}" in said
    found = Comparison.from_dict(written())
    np.testing.assert_array_equal(found.baseline.splits, np.repeat([0, 1, 2], 40))
    assert found.differences("EASE", "recall@20") == expected.differences("EASE", "recall@20")
    assert found.baseline.settings["splits"] == 3
    assert "Split by split" in Path("report.html").read_text()


def test_splits_are_counted_by_the_metrics_of_the_verdict(done, clicks):
    given = (*COLUMNS, *PAIR, "--heldout", 40, "--repeats", 3, "--quiet")
    shown = ("--metric", "recall@1", "--tail", 0.1, "--out", "results.json")
    out = done("compare", clicks, *given, *shown)
    found = Comparison.from_dict(written())
    assert found.floor("recall@1", 0.1).beside == "ndcg"
    asked = ("ndcg", 0.1), ("recall@1", 1.0)
    won = [found.difference("EASE", *each).splits_won for each in asked]
    said = f"better on {won[0]} for the worst-off 10 % (ndcg) and {won[1]} for all users (recall@1)"
    assert said in " ".join(out.split())


def test_one_repetition_is_none(done, clicks):
    given = ("evaluate", clicks, *COLUMNS, *PAIR[:2], "--split", "holdout", "--quiet")
    found = [(done(*given, "--out", "results.json"), written()["scores"])]
    found.append((done(*given, "--out", "results.json", "--repeats", 1), written()["scores"]))
    assert found[0] == found[1]
