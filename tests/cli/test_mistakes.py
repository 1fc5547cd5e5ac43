"""Mistakes of all commands: one line that says what is wrong, exit code 2, and no file touched."""

import shlex
from pathlib import Path

import pytest

from safecf import EASE

COLUMNS = "--user visitor --item page"
CLICKS = f"clicks.parquet {COLUMNS}"
BLOCK = "--users 3 --filter-items"
# What is typed behind `safecf`, and a part of what is said. Data named absent.csv is not there:
# whatever is said of an option before is checked before any work.
MISTAKES = {
    # the command line itself
    "evaluat": "no such command 'evaluat'",
    "fit absent.csv -o m --sead 1": "no such option: --sead",
    "fit absent.csv -o m --seed x": "invalid value for '--seed'",
    "fit absent.csv": "missing option '--out' / '-o'; see safecf fit --help",
    "export m": "missing option '--out' / '-o'; see safecf export --help",
    "similar m": "missing argument",
    "explain m clicks.parquet 3": "missing argument",
    "tune absent.csv -m ials --repeats 3": "no such option: --repeats",
    "similar m -1": "an id that begins with a dash goes behind --, as in -- -5; see safecf similar",
    # data
    "evaluate demi -m ials": "did you mean 'demo'",
    f"evaluate {'1' * 5000} -m ials": "unknown data set or file '111",
    "evaluate absent.csv -m ials": "absent.csv: there is no such file",
    "evaluate ml-1m --path absent -m ials": "absent",
    "evaluate demo -m ials --path x": "--path does not apply to the synthetic data",
    "evaluate ml-1m -m ials --separator ;": "--separator does not apply to the data",
    "evaluate absent.csv -m ials --path x": "--path is for ml-1m, ml-20m, msd; give",
    "evaluate absent.csv -m ials --min-rating 4": "try --rating 'rating'",
    "fit clicks.parquet -o m2": "choose another one by --user",
    f"evaluate {CLICKS} -m ials --duplicates x": "unknown --duplicates 'x'",
    f"evaluate {CLICKS} -m ials --heldout 290": "lower --heldout, or lower --min-user-int",
    "fit m.safetensors -o m2": "'m.safetensors' is a model, not data; give the interactions",
    "data summary absent.csv": "absent.csv: there is no such file",
    "data split split --out new": "is split already; give the data",
    "data split train.csv --out .": "--out train.csv is an input of this command",
    f"data split {CLICKS} --out train.csv": "is a file; give a folder",
    "data split lines.csv --out new": "holds a line break, while a line of unique_sid.txt is one",
    f"fit {CLICKS} -o m2 --min-user-interactions 0": "at least 1; try --min-user-interactions 1",
    # splits
    "evaluate demo -m ials --heldout 0": "heldout 0; hold out at least 1",
    "evaluate absent.csv -m ials --split time": "known are 'strong', 'holdout', 'temporal'",
    "evaluate demo -m ials --split temporal": "no times; read it with --timestamp",
    "evaluate demo -m ials --split holdout --share 2": "--share 2.0; it has to lie between",
    "evaluate demo -m ials --cutoff 5": "--cutoff does not apply to --split strong",
    "evaluate absent.csv -m ials --split-seed -1": "--split-seed -1 has to be at least 0",
    "evaluate absent.csv -m ials --repeats 0": "--repeats 0 has to be at least 1; try --repeats 10",
    f"evaluate absent.csv -m ials --repeats {10**11}": "has to be at most 1,000,000; try",
    "evaluate demo -m ials --repeats 2 --split temporal": "--repeats does not apply to --split",
    f"evaluate {CLICKS} -m ials -m ease.safetensors --repeats 2": "is trained already, while",
    "evaluate split -m ials --heldout 3": "--heldout does not apply to",
    "evaluate split -m ials --split holdout": "--split does not apply to",
    "evaluate split -m ials --repeats 3": "--repeats does not apply to",
    "tune split -m ials --split holdout": "--split does not apply to",
    "evaluate split -m ials --user uid": "--user does not apply to",
    "data summary split --separator ;": "--separator does not apply to",
    # models
    "evaluate absent.csv -m safer": "did you mean 'safer2'",
    "evaluate absent.csv -m ials:factor=3": "did you mean 'factors'",
    "evaluate absent.csv -m ials:factors": "no option=value",
    "evaluate absent.csv -m ials:factors=0": "factors=0 has to be from 1",
    "evaluate absent.csv -m 'ials:factors=4, factors=5'": "factors is given twice; leave one",
    "evaluate absent.csv -m ials -m safer2:kernel=round": "unknown kernel 'round'",
    "evaluate absent.csv -m ./none.safetensors": "none.safetensors: there is no such file, seen",
    f"evaluate {CLICKS} -m ./ease": "for the file, give ease.safetensors",
    "evaluate absent.csv -m ials --seed -1": "--seed -1 has to be at least 0; try --seed 0",
    "fit absent.csv -o m2 --device gpu": "unknown --device 'gpu'",
    f"evaluate {CLICKS} -m ease:dropout=0 --device cuda": "EASE works on the CPU alone; try",
    "compare absent.csv -m ials": "add another one with -m, or use safecf evaluate",
    "fit absent.csv -m safer2 -m ials -o m2": "safecf fit takes one model, while -m is given 2",
    "fit absent.csv -o m2 -m m.safetensors": "is a fitted model; give a model and its options",
    "fit demo -o m2 -m ease --checkpoint c": "EASE has no checkpoints; leave out",
    "fit absent.csv -o m2 --resume c": "--resume c: there is no such file; leave it out",
    f"fit {CLICKS} -o m2 --resume m.safetensors": "give it to safecf recommend, or leave it out",
    "fit absent.csv -o m2 --split-seed 3": "--split-seed is for held-out users; add --heldout",
    "fit absent.csv -o m2 --metric recall": "--metric is for held-out users; add --heldout",
    # metrics
    "evaluate absent.csv -m ials --metric recal": "did you mean 'recall'? known are 'recall', 'nd",
    "evaluate absent.csv -m ials --metric recall@x": "'x' is no cutoff; try --metric 'recall@20'",
    "tune absent.csv -m ials --metric auc@5": "auc has no cutoff; try --metric 'auc'",
    "evaluate absent.csv -m ials --k 0": "--k 0 has to be at least 1",
    "evaluate absent.csv -m ials --tail nan": "--tail nan has to be a share of users",
    "fit absent.csv -o m2 --heldout 9 --tail 3": "--tail 3 has to be a share",
    # searches
    "tune absent.csv -m m.safetensors": "is a fitted model; give a model and its options",
    f"tune {CLICKS} -m ials --trials 0": "--trials 0 has to be at least 1; try --trials 50",
    f"tune {CLICKS} -m ials --minutes 0": "--minutes 0 has to be above 0",
    f"tune {CLICKS} -m ials --objective worst": "unknown --objective 'worst'",
    "tune absent.csv -m ials --range bandwidth=1..2": "unknown option 'bandwidth'",
    "tune absent.csv -m ials --range factors": "is no range; try bandwidth=0.05..0.5",
    "tune absent.csv -m ials --range factors=2..4 --range factors=5..6": "--range factors is given",
    f"tune {CLICKS} -m ials --pick best": "unknown --pick 'best'",
    f"tune {CLICKS} -m ials --pick 9 --trials 9": "--pick 9 is no trial; give a number",
    "tune absent.csv -m ials --against safer": "did you mean 'safer2'",
    "tune absent.csv -m ials --study absent/s": "there is no folder absent",
    "tune absent.csv -m ials --study .": "is a folder; name the file of the study",
    # answers
    "recommend m": "all users are too many to show; give some by --users, or a file",
    "recommend m --users 3": "what the users have already is not given; add the",
    "recommend m --users x --seen": "--users 'x' is no file, and no id: known ids are integers",
    "recommend m --users 3 --resume": "--resume is for a file; name it by -o",
    f"recommend m {CLICKS} -o r.txt": "r.txt: the suffix says no format; end it in",
    f"recommend absent {CLICKS} -o r.csv": "absent",
    f"recommend clicks.parquet {CLICKS} -o r.csv": "it is damaged, or no safetensors",
    f"recommend m {CLICKS} -o r.csv -n 0": "--N 0 has to be at least 1; try --N 10",
    "recommend m --seen --users absent.txt": "--users absent.txt: there is no such file",
    f"recommend m {CLICKS} {BLOCK} a --items b": "--filter-items and --items exclude each other",
    f"recommend m {CLICKS} --users 3 --items none": "unknown item (in --items) 'none'",
    f"recommend m {CLICKS} {BLOCK} empty.txt": "--filter-items: there are no ids; give ids, or",
    f"recommend m {CLICKS} {BLOCK} latin.txt": "latin.txt: it is not written in UTF-8 (byte 0)",
    f"recommend m --histories now.csv {COLUMNS} --users 4": "is not in --histories; add the data",
    "recommend ease.safetensors --users 3 --seen": "EASE computes users from what they have; add",
    "similar ease.safetensors 3 --users": "EASE",
    "similar m none": "unknown item 'none': 80 are known, the first is",
    "similar m x --users": "no id: known ids are integers",
    "similar m 'page 1' --filter-items a --among b": "--filter-items and --among exclude each",
    "similar m 'page 1' --filter-users x": "is for similar users; use --filter-items",
    f"explain m {CLICKS} 9999 'page 1'": "unknown user (in the data) 9999: 300 are known",
    f"explain m {CLICKS} 3 none": "unknown item 'none': 80 are known",
    "export m -o items.bin": "'items.bin' says no format; end it in .usearch, .faiss, .npz, or",
    "export m -o items --format usearh": "unknown --format 'usearh': did you mean",
    "export m -o items.npz --queries -1": "--queries -1 has to be at least 0",
    "serve m --log xml": "unknown --log 'xml': known",
    # this installation
    "doctor --users 5": "--items is missing; give --users, --items and --interactions",
    "doctor --users 0 --items 1 --interactions 1": "--users 0 has to be at least 1; try",
    "doctor --users 9 --items 9 --interactions 99": "are only 81 pairs; lower --interactions",
    "demo --out train.csv": "train.csv is a file; choose another place",
    # targets
    "fit absent.csv -o .": "'.' does not name a file; give a path such as 'model.safetensors'",
    "fit absent.csv -o m2 --checkpoint m2": "--out m2.safetensors and --checkpoint m2.safetensors",
    "fit absent.csv -o m2 --checkpoint absent/c": "there is no folder absent; create it first",
    "evaluate absent.csv -m ials --report /proc/a.html": "cannot write /proc/a.html",
    "evaluate absent.csv -m ials --out train.csv/a.json": "is a file; choose another place",
    "evaluate absent.csv -m ials --out split": "is a folder; name the file to write",
    "evaluate absent.csv -m ials --out /dev/null": "cannot write /dev/null: it is no regular file",
    "evaluate absent.csv -m ials --out loop": "cannot write loop: Too many levels of symbolic",
    f"evaluate absent.csv -m ials --out {'x' * 300}": "File name too long; choose another place",
    "evaluate absent.csv -m ials --out ''": "--out is empty, or this folder; name the file",
    "evaluate absent.csv -m ials --report a --out a/b": "both a file and the folder of",
    f"evaluate {CLICKS} -m ials --report link": "--report link is an input of this command",
    f"evaluate {CLICKS} -m m.safetensors --out m.safetensors": "m.safetensors is an input",
    f"evaluate {CLICKS} -m ease.safetensors --save x": "nothing is trained that --save could save",
    f"evaluate {CLICKS} -m ials --save x --repeats 2": "--save has no one model to save where",
    f"compare {CLICKS} -m ials -m ease --save train.csv": "is a file; give a folder for 2 models",
    "tune absent.csv -m ials --save a --out a.safetensors": "are one file",
    f"tune {CLICKS} -m ials --study clicks.parquet": "is an input of this command",
    f"recommend m {CLICKS} -o clicks.parquet": "is an input of this command",
    "export m -o m.safetensors --format npz": "is an input of this command",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mistakes")


@pytest.fixture
def place(folder, model, data, run, clicks, monkeypatch):
    """A folder with data, models and links, made once."""
    if not (folder / "split").is_dir():
        EASE().fit(data, show_progress=False).save(folder / "ease.safetensors")
        for file in (clicks, Path("m.safetensors")):
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "link").symlink_to("clicks.parquet")
        (folder / "loop").symlink_to("loop")
        (folder / "train.csv").write_text("user,item\n")
        (folder / "now.csv").write_text("visitor,page\n3,page 1\n")
        (folder / "empty.txt").write_text("\n\n")
        (folder / "latin.txt").write_bytes(b"\xe9t\xe9\n")
        pairs = [f'{user},"page\n{page}"\n' for user in range(40) for page in range(6)]
        (folder / "lines.csv").write_text("user,item\n" + "".join(pairs))
        monkeypatch.chdir(folder)
        assert run("data", "split", *CLICKS.split(), "--out", "split", "--heldout", 50)[0] == 0
    monkeypatch.chdir(folder)
    return folder


def content(folder):
    return {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("typed", MISTAKES, ids=lambda typed: typed[:50])
def test_a_mistake_is_one_line(run, place, typed):
    before = content(place)
    code, out, err = run(*shlex.split(typed))
    assert (code, out) == (2, "")
    assert err.startswith("safecf: ")
    assert err.count("\n") == 1
    assert MISTAKES[typed] in err
    assert "; " in err or "known" in err, "what to try?"
    assert content(place) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [("x", "sub/../x"), ("new/x", "NEW/x"), ("train.csv", "hard"), ("clicks.parquet", "link")],
)
def test_two_outputs_are_two_files(run, place, first, second):
    if not Path("hard").exists():
        Path("hard").hardlink_to("train.csv")
    for pair in ((first, second), (second, first)):
        given = ("--report", pair[0], "--out", pair[1])
        code, _, err = run("evaluate", "absent.csv", "-m", "ials", *given)
        told = f"--report {Path(pair[0])} and --out {Path(pair[1])} are one file; name two"
        assert (code, err) == (2, f"safecf: {told}\n")


@pytest.mark.parametrize("text", ["007", "7.0", "1_0", chr(0x667), str(2**63)])
def test_what_is_no_integer_is_no_id(run, place, text):
    code, out, err = run("recommend", "m", "--seen", "--users", text, "--users", "3")
    assert (code, out) == (2, "")
    assert "is no file, and no id: known ids are integers, such as 0\n" in err


def test_control_characters_are_escapes(run):
    code, _, err = run("evaluate", "no\x1b[31m\nfile.csv", "-m", "ials")
    assert (code, err.count("\n"), "\x1b" in err) == (2, 1, False)
