"""`safecf compare --repeats` and `safecf evaluate --repeats`, as they are typed."""

import json

import numpy as np
import pytest

from safecf import EASE, IALS, Comparison, Evaluation, compare, datasets, evaluate
from safecf.data.splits.strong_generalization import repeated_seeds

SMALL = "factors=4,iterations=3"
COLUMNS = ("--user", "visitor", "--item", "page")
MODELS = ("-m", f"ials:{SMALL}", "-m", "ease:regularization=20")


def test_the_results_are_those_of_the_splits(run, clicks, tmp_path):
    files = "--report", tmp_path / "report.html", "--out", tmp_path / "results.json"
    given = (*COLUMNS, *MODELS, "--heldout", 40, "--repeats", 3)
    code, out, err = run("compare", clicks, *given, *files)
    assert code == 0
    assert [f"split {number} of 3" in err for number in range(1, 5)] == [True] * 3 + [False]
    log = datasets.read(clicks, user="visitor", item="page")
    by_model = [[], []]
    for seed in repeated_seeds(3):
        split = log.strong_generalization(heldout=40, seed=seed)
        for found, model in zip(
            by_model, (IALS(4, iterations=3, random_state=0), EASE(20)), strict=True
        ):
            found.append(evaluate(model.fit(split.training, show_progress=False), split))
    expected = compare(by_model)
    assert " ".join(expected.verdict("EASE").split()) in " ".join(out.split())
    assert f"mean over 3 splits ({expected.baseline.num_users:,} users)" in " ".join(out.split())
    won = [expected.difference("EASE", "recall@20", each).splits_won for each in (0.3, 1.0)]
    said = f"EASE is better on {won[0]} for the worst-off 30 % and {won[1]} for all users"
    assert f"Of 3 splits, {said}" in " ".join(out.split())
    found = Comparison.from_dict(json.loads((tmp_path / "results.json").read_text()))
    np.testing.assert_array_equal(found.baseline.splits, np.repeat([0, 1, 2], 40))
    assert found.differences("EASE", "recall@20") == expected.differences("EASE", "recall@20")
    assert found.baseline.settings["splits"] == 3
    assert "Split by split" in (tmp_path / "report.html").read_text()


def test_splits_are_counted_by_the_metrics_of_the_verdict(run, clicks, tmp_path):
    given = (*COLUMNS, *MODELS, "--heldout", 40, "--repeats", 3, "--quiet")
    shown = ("--metric", "recall@1", "--tail", 0.1, "--out", tmp_path / "results.json")
    code, out, _ = run("compare", clicks, *given, *shown)
    assert code == 0
    found = Comparison.from_dict(json.loads((tmp_path / "results.json").read_text()))
    assert found.floor("recall@1", 0.1).beside == "ndcg"
    won = [
        found.difference("EASE", metric, level).splits_won
        for metric, level in (("ndcg", 0.1), ("recall@1", 1.0))
    ]
    said = f"better on {won[0]} for the worst-off 10 % (ndcg) and {won[1]} for all users (recall@1)"
    assert said in " ".join(out.split())


@pytest.mark.parametrize("split", ["strong", "holdout"])
def test_one_repetition_is_none(run, clicks, tmp_path, split):
    outputs = []
    for repeats in ((), ("--repeats", 1), ("--repeats", 2)):
        given = (*COLUMNS, *MODELS[:2], "--split", split, "--out", tmp_path / "results.json")
        code, out, err = run("evaluate", clicks, *given, "--quiet", *repeats)
        assert (code, err) == (0, "")
        record = json.loads((tmp_path / "results.json").read_text())
        outputs.append((out, Evaluation.from_dict(record)))
    (before, alone), (after, once), (_, twice) = outputs
    assert before == after
    np.testing.assert_array_equal(alone.scores["recall@20"], once.scores["recall@20"])
    assert (once.num_splits, twice.num_splits) == (1, 2)
    assert twice.num_users <= len(twice.users.ids)
    assert (twice.num_users == 300) == (split == "holdout")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "--repeats 0 has to be at least 1; try --repeats 10"),
        (["--repeats", str(10**11)], "--repeats 100000000000 has to be at most 1,000,000; try"),
        (["--repeats", "-1"], "--repeats -1 has to be at least 1; try --repeats 10"),
        (["--repeats", "2", "--split", "temporal"], "--repeats does not apply to --split temporal"),
        (["--repeats", "2", "-m", "{file}"], "EASE (mine) is trained already, while --repeats"),
    ],
)
def test_what_cannot_be_repeated_is_one_line(run, clicks, tmp_path, arguments, message):
    split = datasets.read(clicks, user="visitor", item="page").strong_generalization()
    EASE(20).fit(split.training, show_progress=False).save(tmp_path / "mine.safetensors")
    given = [each.format(file=tmp_path / "mine.safetensors") for each in arguments]
    code, out, err = run("evaluate", clicks, *COLUMNS, *MODELS[:2], *given)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1
