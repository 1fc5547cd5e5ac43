"""`safecf tune`, as it is typed."""

import json
import shlex
from pathlib import Path

import safecf
from safecf import Comparison
from tests.cli import conftest

SMALL = "factors=4,iterations=6"
COLUMNS = (*conftest.COLUMNS, "--heldout", 50, "-q")


def test_one_command_tunes_texts_and_writes_everything(done, clicks, tmp_path):
    files = "--report", "new/page.html", "--out", "new/numbers.json", "--save", "best"
    models = "-m", f"ermmf:{SMALL}", "--against", f"ials:{SMALL}"
    out = done("tune", clicks, *models, "--trials", 4, *COLUMNS, *files)
    model = safecf.load("best.safetensors")
    assert isinstance(model, safecf.ERMMF)
    assert model.factors == 4
    assert model.item_ids[0].startswith("page ")
    assert model.provenance["study"] == "clicks-ermmf.study.sqlite"
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


def test_the_last_line_trains_with_the_best_options(done, clicks):
    fixed = f"ials:{SMALL},unobserved_weight=0.30000000000000004"
    command = ("tune", clicks, "-m", fixed, "--trials", 4, "--seed", 3, "--save", "best", *COLUMNS)
    out = done(*command)
    start, following = out.splitlines()[-1].split(maxsplit=1)
    program, *again = shlex.split(following)
    assert (start, program) == ("next:", "safecf")
    assert "unobserved_weight=0.30000000000000004" in again[again.index("-m") + 1]
    done(*again, "-q")
    best = safecf.load("best.safetensors")
    assert safecf.load("model.safetensors").get_params() == best.get_params()
    for name in ("regularization", "worst-off 30 %", "defaults"):  # in one piece
        assert name in out


def test_the_same_command_goes_on_and_prints_the_same(done, clicks):
    command = ("tune", clicks, "-m", f"ials:{SMALL}", "--study", "mine", *COLUMNS)
    assert done(*command, "--trials", 4) == done(*command, "--trials", 4)
    assert "5 trials" in done(*command, "--trials", 5)


def test_ranges_are_honoured_and_fixed_options_stay(done, clicks):
    """A range of whole numbers does not make an option an integer."""
    ranges = ("regularization=0.5..0.6", "ridge_exponent=0,1", "unobserved_weight=1..2")
    given = [word for each in ranges for word in ("--range", each)]
    fixed = ("-m", f"ials:{SMALL},unobserved_weight=1", "--trials", 4)
    done("tune", clicks, *fixed, *given, *COLUMNS, "--out", "n.json")
    (search,) = json.loads(Path("n.json").read_text())["tuning"]["searches"]
    assert {*search["ranges"]} == {each.split("=")[0] for each in ranges}
    for trial in search["trials"][1:]:
        assert 0.5 <= trial["options"]["regularization"] <= 0.6
        assert trial["options"]["ridge_exponent"] in (0, 1)
        assert 1 < trial["options"]["unobserved_weight"] < 2


def test_another_search_needs_another_study(run, done, clicks):
    command = ("tune", clicks, "-m", f"ials:{SMALL}", "--trials", 1, *COLUMNS)
    done(*command)
    code, _, err = run(*command, "--objective", "tail")
    said = "objective both there, tail here; give another file, as in --study 'another.sqlite', or"
    assert (code, said in err) == (2, True)
