"""`safecf tune`, as it is typed."""

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import safecf
from safecf import Comparison
from safecf.cli.tune import default_study
from safecf.data.datasets.synthetic import synthetic
from safecf.tuning.trials import Task

SMALL = "factors=4,iterations=6"
COLUMNS = ("--user", "visitor", "--item", "page", "--heldout", 50, "-q")


@pytest.fixture
def visits(tmp_path):
    """Return a Parquet file whose users and items are texts."""
    pairs = synthetic(300, 80, 6000, tastes=3).matrix.tocoo()
    columns = {
        "visitor": [f"visitor {user:03}" for user in pairs.row],
        "page": [f"/page/{item}" for item in pairs.col],
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_one_command_tunes_texts_and_writes_everything(run, visits, tmp_path):
    files = "--report", "new/page.html", "--out", "new/numbers.json", "--save", "best"
    models = "-m", f"ermmf:{SMALL}", "--against", f"ials:{SMALL}"
    code, out, err = run("tune", visits, *models, "--trials", 4, *COLUMNS, *files)
    assert (code, err) == (0, "")
    model = safecf.load("best.safetensors")
    assert isinstance(model, safecf.ERMMF)
    assert model.factors == 4
    assert model.user_ids[0].startswith("visitor ")
    assert model.item_ids[0].startswith("/page/")
    assert model.provenance["study"] == "visits-ermmf.study.sqlite"
    assert model.provenance["trials"] == 4
    numbers = json.loads((tmp_path / "new" / "numbers.json").read_text())
    results = Comparison.from_dict(numbers)
    assert results.baseline.model == "IALS (tuned)"
    assert [each.model for each in results.others] == ["ERMMF (defaults)", "ERMMF (tuned)"]
    assert "ERMMF (tuned)" in numbers["verdicts"]
    searches = numbers["tuning"]["searches"]
    assert [len(each["trials"]) for each in searches] == [4, 4]
    assert searches[0]["best"] == model.provenance["trial"]
    page = (tmp_path / "new" / "page.html").read_text()
    assert "How the options were found" in page
    for each in (results.baseline, *results.others):
        assert f"{each.tail('recall@20', 0.3):.4f}" in out
    for name in ("new/page.html", "new/numbers.json", "best.safetensors"):
        assert f"written: {name}" in out


def test_the_last_line_trains_with_the_best_options(run, visits):
    fixed = f"ials:{SMALL},unobserved_weight=0.30000000000000004"
    command = ("tune", visits, "-m", fixed, "--trials", 4, "--seed", 3, "--save", "best", *COLUMNS)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    start, following = out.splitlines()[-1].split(maxsplit=1)
    program, *again = shlex.split(following)
    assert (start, program) == ("next:", "safecf")
    assert "unobserved_weight=0.30000000000000004" in again[again.index("-m") + 1]
    assert run(*again, "-q")[0] == 0
    best = safecf.load("best.safetensors")
    assert safecf.load("model.safetensors").get_params() == best.get_params()
    for name in ("regularization", "worst-off 30 %", "defaults"):  # in one piece
        assert name in out


def test_the_same_command_goes_on_and_prints_the_same(run, visits):
    command = ("tune", visits, "-m", f"ials:{SMALL}", "--study", "mine", *COLUMNS)
    first = run(*command, "--trials", 5)
    assert run(*command, "--trials", 5) == first
    more = run(*command, "--trials", 6)
    assert more[0] == 0
    assert "6 trials" in more[1]


def test_ranges_are_honoured_and_fixed_options_stay(run, visits):
    ranges = "--range", "regularization=0.5..0.6", "--range", "ridge_exponent=0,1"
    fixed = "-m", f"ials:{SMALL},unobserved_weight=0.2"
    code, _, _ = run("tune", visits, *fixed, *ranges, "--trials", 4, *COLUMNS, "--out", "n.json")
    assert code == 0
    (search,) = json.loads(Path("n.json").read_text())["tuning"]["searches"]
    assert set(search["ranges"]) == {"regularization", "ridge_exponent"}
    for trial in search["trials"][1:]:
        assert 0.5 <= trial["options"]["regularization"] <= 0.6
        assert trial["options"]["ridge_exponent"] in (0, 1)


def test_whole_numbers_do_not_make_an_option_an_integer(run, visits):
    given = "-m", f"ials:{SMALL},unobserved_weight=1", "--range", "unobserved_weight=1..2"
    code, _, _ = run("tune", visits, *given, "--trials", 3, *COLUMNS, "--out", "n.json")
    assert code == 0
    (search,) = json.loads(Path("n.json").read_text())["tuning"]["searches"]
    values = [each["options"]["unobserved_weight"] for each in search["trials"][1:]]
    assert all(1 < each < 2 for each in values)


def test_ctrl_c_shows_the_best_so_far(run, visits, monkeypatch):
    calls, score = [], Task.score

    def interrupted(self, model):
        calls.append(model)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return score(self, model)

    monkeypatch.setattr(Task, "score", interrupted)
    code, out, err = run("tune", visits, "-m", f"ials:{SMALL}", "--trials", 5, *COLUMNS)
    assert (code, out) == (130, "")
    assert err.startswith("IALS: 1 trial, best mean 0.")
    assert "visits-ials.study.sqlite has all finished trials: start again to go on" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "safer"], "did you mean 'safer2'"),
        (["-m", "x.safetensors"], "is a fitted model; give a model and its options"),
        (["-m", "ials", "--trials", "0"], "--trials 0 has to be at least 1; try --trials 50"),
        (["-m", "ials", "--minutes", "0"], "--minutes 0 has to be above 0"),
        (["-m", "ials", "--objective", "worst"], "unknown --objective 'worst'"),
        (["-m", "ials", "--range", "bandwidth=1..2"], "unknown option 'bandwidth'"),
        (["-m", "ials", "--range", "regularization=2..1"], "0 < low <= high is needed"),
        (["-m", "ials", "--range", "regularization"], "is no range; try bandwidth=0.05..0.5"),
        (
            ["-m", "ials", "--range", "factors=2..4", "--range", "factors=5..6"],
            "--range factors is given twice; leave one of them out",
        ),
        (["-m", "ials", "--metric", "recal"], "did you mean 'recall'"),
        (["-m", "ials", "--metric", "auc@5"], "auc has no cutoff; try --metric 'auc'"),
        (["-m", "ials", "--metric", "recall@0"], "'0' is no cutoff; try --metric 'recall@20'"),
        (
            ["-m", "ials", "--tail", "2"],
            "--tail 2 has to be a share of users, above 0 and at most 1; try --tail 0.3",
        ),
        (["-m", "ials", "--pick", "best"], "unknown --pick 'best'"),
        (["-m", "ials", "--pick", "9", "--trials", "9"], "--pick 9 is no trial; they are numbered"),
        (["-m", "ials", "--against", "safer"], "did you mean 'safer2'"),
        (["-m", "ials", "--save", ".safetensors"], "does not name a file; give a path such as"),
        (["-m", "ials", "--study", "nowhere/s"], "there is no folder nowhere"),
        (["-m", "ials", "--study", "."], "is a folder; name the file of the study"),
    ],
)
def test_bad_input_is_one_line(run, visits, arguments, message):
    code, out, err = run("tune", visits, *arguments, *COLUMNS)
    assert (code, out) == (2, "")
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1
    assert message in err


def test_one_split_is_searched(run, visits):
    code, out, err = run("tune", visits, "-m", "ials", "--repeats", 3, *COLUMNS)
    assert (code, out) == (2, "")
    assert "no such option: --repeats" in err


def test_another_search_needs_another_study(run, visits):
    command = ("tune", visits, "-m", f"ials:{SMALL}", "--trials", 1, *COLUMNS)
    assert run(*command)[0] == 0
    code, _, err = run(*command, "--objective", "tail")
    assert code == 2
    assert (
        "objective both there, tail here. Give another file, as in --study 'another.sqlite', or"
        in err
    )


def test_studies_are_named_after_data_and_model():
    assert default_study("data/clicks.csv.gz", "safer2:factors=64") == "clicks-safer2.study.sqlite"
    assert default_study("logs/*.csv", "EASE") == "data-ease.study.sqlite"
