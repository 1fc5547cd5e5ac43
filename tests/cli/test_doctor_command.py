"""`safecf doctor`, as it is typed."""

import json

import pytest

from safecf import doctor
from safecf.doctor import Finding


@pytest.fixture
def examined(monkeypatch):
    """Let the doctor find what is put into a dict."""
    found = {"software": [Finding("safecf", "1.0")], "extras": [Finding("torch", "missing", None)]}
    monkeypatch.setattr(doctor, "examine", lambda: found)
    return found


def test_what_works_and_what_is_not_there(done, examined):
    assert [line.split() for line in done("doctor").splitlines()] == [
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


def test_needs_of_a_data_size(done, examined):
    sizes = ("--users", "1000000", "--items", "50000", "--interactions", "100000000")
    needed = json.loads(done("doctor", *sizes, "--json"))["needs"]
    assert needed["training"] == doctor.needs(10**6, 50_000, 10**8).training
    out = " ".join(done("doctor", *sizes, "--factors", "100000").split())
    assert "1,000,000 users, 50,000 items, 100,000,000 interactions, 100000 factors" in out
    assert "too little: lower factors" in out
