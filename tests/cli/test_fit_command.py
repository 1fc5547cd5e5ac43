"""`safecf fit`, and `--save` of evaluate and compare, as they are typed."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import safecf
import safecf.cli.results  # before a test replaces what it imports
from safecf import IALS, datasets
from safecf.cli.evaluate import file_name

SMALL = "factors=4,iterations=3"
COLUMNS = ("--user", "visitor", "--item", "page")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def trained_on(data):
    return IALS(4, iterations=3, random_state=0).fit(data, show_progress=False)


def test_all_data_is_trained_on(run, clicks):
    code, out, err = run("fit", clicks, *COLUMNS, "-m", f"ials:{SMALL}", "-o", "new/model", "-q")
    assert (code, err) == (0, "")
    model = safecf.load("new/model.safetensors")
    data = datasets.read(clicks, user="visitor", item="page").interactions()
    np.testing.assert_array_equal(model.item_factors, trained_on(data).item_factors)
    assert model.user_ids.tolist() == data.user_ids.tolist()
    assert f"{data.num_users:,} users, {data.num_items:,} items" in out
    assert "written: new/model.safetensors (" in out
    assert f"safecf recommend new/model.safetensors {clicks} --user visitor --item page" in out
    assert f"safecf serve new/model.safetensors {clicks} --user visitor --item page" in out


def test_the_default_model_is_safer2(run):
    assert run("fit", "demo", "-o", "model", "-q")[0] == 0
    assert isinstance(safecf.load("model.safetensors"), safecf.SAFER2)


def test_held_out_users_are_reported_and_not_trained_on(run, clicks):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    fitted = run("fit", *given, "-m", f"ials:{SMALL}", "-o", "model", "--json")
    assert (fitted[0], fitted[2]) == (0, "")
    record = json.loads(fitted[1])
    split = datasets.read(clicks, user="visitor", item="page").strong_generalization(heldout=50)
    test_users = split.user_ids[-50:].tolist()
    model = safecf.load(record["file"])
    assert not {*model.user_ids.tolist()} & {*test_users}
    assert len(model.user_ids) == len(split.user_ids) - 50 == record["users"]
    code, out, err = run("evaluate", *given, "-m", "model.safetensors", "--out", "numbers.json")
    assert (code, err) == (0, "")  # without the warning that test users were trained on
    evaluation = safecf.Evaluation.from_dict(json.loads(Path("numbers.json").read_text()))
    assert record["heldout"]["tail"] == pytest.approx(evaluation.tail("recall@20", 0.3))
    assert record["heldout"]["users"] == 50
    _, out, _ = run("fit", *given, "-m", f"ials:{SMALL}", "-o", "model")
    assert f"{evaluation.tail('recall@20', 0.3):.4f}" in out


def test_users_who_are_dropped_are_counted(run, clicks):
    """A split drops those with few interactions."""
    few, enough = 7000, 7001
    table = pyarrow.parquet.read_table(clicks).select(["visitor", "page"])
    pages = [(few, "page 1"), (few, "page 2"), *((enough, f"page {n}") for n in range(5))]
    more = pa.table({"visitor": [u for u, _ in pages], "page": [p for _, p in pages]})
    more = more.cast(table.schema)
    pyarrow.parquet.write_table(pa.concat_tables([table, more]), "more.parquet")
    data = datasets.read("more.parquet", user="visitor", item="page").interactions()
    short = int((np.diff(data.to_csr().indptr) < 5).sum())
    given = ("fit", "more.parquet", *COLUMNS, "-m", f"ials:{SMALL}", "-o", "m", "-q")
    code, out, err = run(*given, "--heldout", 40)
    assert (code, err) == (0, "")
    told = " ".join(out.split())
    assert f"40 held-out users, and {short} with fewer than 5 interactions (see --min-user" in told
    record = json.loads(run(*given, "--heldout", 40, "--json")[1])
    assert record["users"] + 40 + short == data.num_users
    assert (record["heldout_users"], record["dropped_users"]) == (40, short)
    answer = ("recommend", "m.safetensors", "more.parquet", *COLUMNS, "-o", "r.parquet", "-q")
    code, out, err = run(*answer)
    assert (code, err) == (0, "")
    assert f"{40 + short} users of the data are unknown to the model and have no row" in out
    assert json.loads(run(*answer, "--json")[1])["unknown_users"] == 40 + short
    for more in (("--users", "more.parquet"), ("--recalculate-user",)):
        record = json.loads(run(*answer, *more, "--json")[1])
        assert (record["users"], record["unknown_users"]) == (data.num_users, 0)


def test_one_model_is_trained(run, clicks):
    for command in (("fit", "-o", "m"), ("tune",)):
        name, *rest = command
        code, out, err = run(name, clicks, *COLUMNS, *rest, "-m", "safer2", "-m", "ials")
        assert (code, out) == (2, "")
        assert f"safecf {name} takes one model, while -m is given 2 times; leave out all" in err


def test_a_checkpoint_alone_is_to_be_resumed(run, clicks, monkeypatch):
    def interrupt(*epoch):
        if len(epoch) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("safecf.cli.running.check_interrupt", interrupt)
    given = ("-m", f"ials:{SMALL}", "-o", "model", "-q", "--checkpoint", "run")
    code, _, err = run("fit", clicks, *COLUMNS, *given)
    assert code == 130
    assert (
        err == "safecf: interrupted; to go on, add --resume run.safetensors to the same command\n"
    )


def test_a_split_is_trained_on_as_a_whole(run, clicks):
    assert run("data", "split", clicks, *COLUMNS, "--out", "split", "--heldout", 50)[0] == 0
    assert run("fit", "split", "-m", f"ials:{SMALL}", "-o", "model", "-q")[0] == 0
    model = safecf.load("model.safetensors")
    assert model.item_ids[0].startswith("page ")
    assert model.shape[0] == safecf.split.read("split").user_ids.size
    data = datasets.read(clicks, user="visitor", item="page").interactions()
    assert {*model.user_ids.tolist()} <= {*data.user_ids.tolist()}
    told = run("recommend", "model", "split", "--users", model.user_ids[7], "-n", 1, "--json")[1]
    assert json.loads(told)[0]["user"] == model.user_ids[7]


def test_an_interrupted_training_goes_on(run, clicks, monkeypatch):
    command = ("fit", clicks, *COLUMNS, "-m", "ials:factors=4,iterations=6", "-o", "model", "-q")
    again = ("--checkpoint", "run", "--resume", "run")
    epochs = []

    def interrupt(*_):
        epochs.append(0)
        if len(epochs) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("safecf.cli.running.check_interrupt", interrupt)
        code, out, err = run(*command, *again)
    assert (code, out) == (130, "")
    assert err == "safecf: interrupted; to go on, start the same command again\n"
    assert not os.path.exists("model.safetensors")
    assert run(*command, *again)[0] == 0
    resumed = safecf.load("model.safetensors")
    assert run(*command)[0] == 0
    whole = safecf.load("model.safetensors")
    np.testing.assert_array_equal(resumed.item_factors, whole.item_factors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing option '--out' / '-o'; see safecf fit --help"),
        (["-o", "."], "'.' does not name a file; give a path such as 'model.safetensors'"),
        (["-o", "m", "-m", "m.safetensors"], "is a fitted model; give a model and its options"),
        (["-o", "m", "-m", "safer"], "did you mean 'safer2'"),
        (["-o", "m", "-m", "ease", "--checkpoint", "c"], "EASE has no checkpoints; leave out"),
        (["-o", "m", "--resume", "c"], "--resume c: there is no such file; leave it out"),
        (["-o", "m", "--checkpoint", "m"], "--out m.safetensors and --checkpoint m.safetensors"),
        (["-o", "m", "--checkpoint", "no/c"], "there is no folder no; create it first"),
        (["-o", "m", "--heldout", "0"], "--heldout 0; hold out at least 1"),
        (["-o", "m", "--split-seed", "3"], "--split-seed is for held-out users; add --heldout"),
        (["-o", "m", "--metric", "recall"], "--metric is for held-out users; add --heldout"),
        (["-o", "m", "--heldout", "9", "--tail", "3"], "--tail 3 has to be a share"),
        (["-o", "m", "--seed", "-1"], "--seed -1 has to be at least 0"),
        (["-o", "m", "--seed", "x"], "invalid value for '--seed'"),
        (["-o", "m", "--sead", "1"], "no such option: --sead"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, arguments, message):
    code, out, err = run("fit", "demo", "-q", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())


def test_advice_is_about_commands(run, clicks):
    given = (clicks, *COLUMNS, "-q")
    assert run("fit", *given, "-m", f"ials:{SMALL}", "-o", "m")[0] == 0
    code, _, err = run("evaluate", *given, "-m", "m.safetensors")
    assert code == 0
    assert "too good; train it by safecf fit --heldout N and evaluate with the same N\n" in err
    code, _, err = run("fit", *given, "-m", f"ials:{SMALL}", "-o", "n", "--resume", "m.safetensors")
    assert code == 2
    assert "give it to safecf recommend, or leave it out" in err
    assert "safecf.load" not in err


def test_a_model_is_no_data(run):
    code, _, err = run("fit", "model.safetensors", "-o", "m")
    assert code == 2
    assert "'model.safetensors' is a model, not data; give the interactions" in err


def test_evaluate_saves_what_it_has_trained(run, clicks):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    code, first, err = run("evaluate", *given, "-m", f"ials:{SMALL}", "--save", "new/mine")
    assert (code, err) == (0, "")
    assert "written: new/mine.safetensors" in first
    split = datasets.read(clicks, user="visitor", item="page").strong_generalization(heldout=50)
    found = safecf.load("new/mine").item_factors
    np.testing.assert_array_equal(found, trained_on(split.training).item_factors)


def test_compare_saves_into_a_folder(run, clicks):
    given = (clicks, *COLUMNS, "--heldout", 50, "-q")
    models = ("-m", f"ials:{SMALL}", "-m", "ials:factors=5,iterations=2", "-m", "ease")
    code, out, err = run("compare", *given, *models, "--save", "models")
    assert (code, err) == (0, "")
    names = ["ials-factors-4-iterations-3", "ials-factors-5-iterations-2", "ease"]
    assert sorted(os.listdir("models")) == sorted(f"{name}.safetensors" for name in names)
    assert safecf.load("models/ials-factors-5-iterations-2").factors == 5
    assert all(f"written: models/{name}.safetensors" in out for name in names)
    saved = ("-m", "models/ease.safetensors", "-m", f"safer2:{SMALL}")
    assert run("compare", *given, *saved, "--save", "others")[0] == 0
    assert os.listdir("others") == ["safer2.safetensors"]
    code, _, err = run("compare", *given, *models, "--save", "models/ease.safetensors")
    assert (code, "is a file; give a folder for 3 models" in err) == (2, True)
    code, _, err = run("evaluate", *given, "-m", "models/ease.safetensors", "--save", "again")
    assert (code, "nothing is trained that --save could save" in err) == (2, True)
    code, _, err = run("evaluate", *given, "-m", "ials", "--save", "x", "--repeats", 2)
    assert (code, "--save has no one model to save where --repeats trains several" in err) == (
        2,
        True,
    )


def test_files_of_models_have_their_names():
    assert file_name("IALS (factors=8) #2") == "ials-factors-8-2.safetensors"
    assert file_name("SAFER2") == "safer2.safetensors"


def test_a_device(run, clicks):
    options = ("-m", f"ials:{SMALL}", "-o", "model", "-q")
    assert run("fit", clicks, *COLUMNS, *options, "--device", "cpu")[::2] == (0, "")
    assert safecf.load("model").device == "cpu"
    code, out, err = run("fit", clicks, *COLUMNS, *options, "--device", "gpu")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "unknown --device 'gpu'" in err
    told = run("recommend", "model.safetensors", "--users", 3, "--seen", "--device", "cpu")
    assert told == run("recommend", "model.safetensors", "--users", 3, "--seen")
    code, _, err = run("evaluate", clicks, *COLUMNS, "-m", "ease", "--device", "cuda", "-q")
    assert (code, err.count("\n")) == (2, 1)
    assert "EASE works on the CPU alone; try --device 'auto'" in err
