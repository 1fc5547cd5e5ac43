"""`safecf doctor`, as it is typed."""

import json

import pytest

from safecf import doctor
from safecf.doctor import Finding

HEALTHY = {"software": [Finding("safecf", "1.0")], "extras": [Finding("torch", "missing", None)]}


@pytest.fixture
def examined(monkeypatch):
    """Let the doctor find what is put into a dict."""
    found = dict(HEALTHY)
    monkeypatch.setattr(doctor, "examine", lambda: found)
    return found


def test_what_works_and_what_is_not_there(run, examined):
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["software"],
        ["ok", "safecf", "1.0"],
        ["extras"],
        ["-", "torch", "missing"],
        ["all", "that", "is", "installed", "works"],
    ]


def test_what_does_not_work_is_exit_code_1(run, examined):
    examined["self-test"] = [Finding("train", "RuntimeError: x", False)]
    code, out, err = run("doctor")
    assert (code, err) == (1, "")
    assert "FAILS train" in out
    assert out.endswith("does not work: train\n")
    code, out, _ = run("doctor", "--json")
    record = json.loads(out)
    assert (code, record["works"]) == (1, False)
    assert record["self-test"] == [{"name": "train", "found": "RuntimeError: x", "works": False}]


def test_there_are_no_more_interactions_than_pairs(run, examined):
    code, out, err = run("doctor", "--users", 10, "--items", 10, "--interactions", 1000)
    assert (code, out) == (2, "")
    assert "10 users and 10 items are only 100 pairs; lower --interactions" in err


def test_needs_of_a_data_size(run, examined):
    sizes = ("--users", "1000000", "--items", "50000", "--interactions", "100000000")
    code, out, _ = run("doctor", *sizes, "--json")
    needed = json.loads(out)["needs"]
    assert code == 0
    assert needed["training"] == doctor.needs(10**6, 50_000, 10**8).training
    code, out, _ = run("doctor", *sizes, "--factors", "100000")
    assert code == 0
    assert "1,000,000 users, 50,000 items, 100,000,000 interactions, 100000 factors" in out
    assert "too little: lower factors" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--users", "5"], "--items is missing; give --users, --items and --interactions"),
        (
            ["--users", "0", "--items", "1", "--interactions", "1"],
            "--users 0 has to be at least 1; try --users 1000",
        ),
        (["--users", "x"], "invalid value for '--users'"),
    ],
)
def test_bad_input_is_one_line(run, examined, arguments, message):
    code, out, err = run("doctor", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_the_real_installation_works(run):
    code, out, err = run("doctor", "--json")
    record = json.loads(out)
    assert (code, err) == (0, ""), record
    assert record["works"]
