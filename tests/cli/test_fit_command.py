"""`safecf fit`, and `--save` of evaluate and compare, as they are typed."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import safecf
from safecf import IALS, SAFER2, datasets
from tests.cli.conftest import COLUMNS, SMALL


def trained_on(data):
    return IALS(4, iterations=3, random_state=0).fit(data, show_progress=False)


def test_all_data_is_trained_on(done, clicks, data):
    out = done("fit", clicks, *COLUMNS, "-m", SMALL, "-o", "new/model", "-q", "--device", "cpu")
    model = safecf.load("new/model.safetensors")
    np.testing.assert_array_equal(model.item_factors, trained_on(data).item_factors)
    assert model.user_ids.tolist() == data.user_ids.tolist()
    assert model.device == "cpu"
    assert f"{data.num_users:,} users, {data.num_items:,} items" in out
    assert "written: new/model.safetensors (" in out
    for command in ("recommend", "serve"):
        again = f"safecf {command} new/model.safetensors {clicks} --user visitor --item page"
        assert again in out


def test_the_options_of_a_model_are_typed_behind_its_name(done, clicks):
    given = "safer2:factors=8,iterations=1,kernel=logistic,bandwidth=inf"
    done("fit", clicks, *COLUMNS, "-m", given, "--seed", 3, "-o", "model", "-q")
    wanted = SAFER2(8, iterations=1, kernel="logistic", bandwidth=np.inf, random_state=3)
    assert safecf.load("model").get_params() == wanted.get_params()
    done("fit", clicks, *COLUMNS, "-o", "model", "-q")
    assert safecf.load("model").get_params() == SAFER2(random_state=0).get_params()


def test_held_out_users_are_reported_and_not_trained_on(done, clicks, log):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    record = json.loads(done("fit", *given, "-m", SMALL, "-o", "model", "--json"))
    split = log.strong_generalization(heldout=50)
    model = safecf.load(record["file"])
    assert not {*model.user_ids.tolist()} & {*split.user_ids[-50:].tolist()}
    assert len(model.user_ids) == len(split.user_ids) - 50 == record["users"]
    # without the warning that test users were trained on
    done("evaluate", *given, "-m", "model.safetensors", "--out", "numbers.json")
    evaluation = safecf.Evaluation.from_dict(json.loads(Path("numbers.json").read_text()))
    assert record["heldout"]["tail"] == pytest.approx(evaluation.tail("recall@20", 0.3))
    assert record["heldout"]["users"] == 50
    out = done("fit", *given, "-m", SMALL, "-o", "model")
    assert f"{evaluation.tail('recall@20', 0.3):.4f}" in out


def test_a_model_of_the_test_users_is_warned_of(run, done, clicks):
    given = (clicks, *COLUMNS, "-q")
    done("fit", *given, "-m", SMALL, "-o", "m")
    code, _, err = run("evaluate", *given, "-m", "m.safetensors")
    assert code == 0
    assert "too good; train it by safecf fit --heldout N and evaluate with the same N\n" in err


def test_users_who_are_dropped_are_counted(done, clicks):
    """A split drops those with few interactions."""
    few, enough = 7000, 7001
    table = pyarrow.parquet.read_table(clicks).select(["visitor", "page"])
    pages = [(few, "page 1"), (few, "page 2"), *((enough, f"page {n}") for n in range(5))]
    more = pa.table({"visitor": [u for u, _ in pages], "page": [p for _, p in pages]})
    more = more.cast(table.schema)
    pyarrow.parquet.write_table(pa.concat_tables([table, more]), "more.parquet")
    data = datasets.read("more.parquet", user="visitor", item="page").interactions()
    short = int((np.diff(data.to_csr().indptr) < 5).sum())
    given = ("fit", "more.parquet", *COLUMNS, "-m", SMALL, "-o", "m", "-q", "--heldout", 40)
    told = " ".join(done(*given).split())
    assert f"40 held-out users, and {short} with fewer than 5 interactions (see --min-user" in told
    record = json.loads(done(*given, "--json"))
    assert record["users"] + 40 + short == data.num_users
    assert (record["heldout_users"], record["dropped_users"]) == (40, short)
    answer = ("recommend", "m.safetensors", "more.parquet", *COLUMNS, "-o", "r.parquet", "-q")
    assert f"{40 + short} users of the data are unknown to the model and have" in done(*answer)
    assert json.loads(done(*answer, "--json"))["unknown_users"] == 40 + short
    for option in (("--users", "more.parquet"), ("--recalculate-user",)):
        record = json.loads(done(*answer, *option, "--json"))
        assert (record["users"], record["unknown_users"]) == (data.num_users, 0)


def test_a_split_is_trained_on_as_a_whole(done, clicks, data):
    done("data", "split", clicks, *COLUMNS, "--out", "split", "--heldout", 50)
    done("fit", "split", "-m", SMALL, "-o", "model", "-q")
    model = safecf.load("model.safetensors")
    assert model.shape[0] == safecf.split.read("split").user_ids.size
    assert {*model.user_ids.tolist()} <= {*data.user_ids.tolist()}
    told = done("recommend", "model", "split", "--users", model.user_ids[7], "-n", 1, "--json")
    assert json.loads(told)[0]["user"] == model.user_ids[7]


def test_evaluate_saves_what_it_has_trained(done, clicks, log):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    assert "written: new/mine.safetensors" in done(
        "evaluate", *given, "-m", SMALL, "--save", "new/mine"
    )
    trained = trained_on(log.strong_generalization(heldout=50).training)
    np.testing.assert_array_equal(safecf.load("new/mine").item_factors, trained.item_factors)


def test_compare_saves_into_a_folder(done, clicks):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    models = ("-m", SMALL, "-m", "ials:factors=5,iterations=2", "-m", "ease")
    out = done("compare", *given, *models, "--save", "models")
    names = ["ials-factors-4-iterations-3", "ials-factors-5-iterations-2", "ease"]
    assert sorted(os.listdir("models")) == sorted(f"{name}.safetensors" for name in names)
    assert safecf.load("models/ials-factors-5-iterations-2").factors == 5
    assert all(f"written: models/{name}.safetensors" in out for name in names)
    saved = ("-m", "models/ease.safetensors", "-m", "safer2:factors=4,iterations=2")
    done("compare", *given, *saved, "--save", "others")
    assert os.listdir("others") == ["safer2.safetensors"]
