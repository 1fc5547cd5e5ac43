"""`safecf export`, as it is typed."""

import json

import numpy as np
import pytest

import safecf
from safecf import IALS
from safecf.approximate import FORMATS
from safecf.cli.export import EXPORTS
from safecf.data.datasets.synthetic import synthetic


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    """Return a model, saved as m.safetensors."""
    monkeypatch.chdir(tmp_path)
    matrix = synthetic(100, 60, 1500).matrix
    trained = IALS(4, iterations=2, random_state=0).fit(matrix, show_progress=False)
    trained.save("m.safetensors")
    return trained


def test_vectors_and_ids_are_written(run, model):
    code, out, err = run("export", "m.safetensors", "-o", "new/items.npz")
    assert code == 0
    bars = [line.split() for line in err.splitlines()]
    assert [(bar[0], bar[2]) for bar in bars] == [("index", "60/60"), ("check", "200/200")]
    assert "60, each 4 numbers" in out
    assert "fast enough, no index is needed." in " ".join(out.split())
    assert "written: new/items.npz (" in out
    assert "written: new/items.npz.json" in out
    with np.load("new/items.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["vectors"], model.item_factors)


def test_numbers_for_machines(run):
    pytest.importorskip("usearch")
    code, out, err = run(
        "export", "m.safetensors", "-o", "items.usearch", "--queries", 30, "-q", "--json"
    )
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert (record["items"], record["check"]["queries"]) == (60, 30)
    assert set(record["check"]["recall"]) == {"10", "60"}
    assert "no index is needed" in record["verdict"]
    code, out, _ = run("export", "m.safetensors", "-o", "items.usearch", "--queries", 30, "-q")
    assert (code, "recall" in out, "index" in out) == (0, True, True)


def test_the_model_is_not_overwritten_without_its_suffix_either(run, model):
    code, _, err = run("export", "m", "-o", "m.safetensors", "--format", "npz")
    assert (code, "is an input of this command" in err) == (2, True)
    assert safecf.load("m").shape == model.shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing option '--out' / '-o'; see safecf export --help"),
        (["-o", "items.bin"], "'items.bin' says no format; end it in .usearch, .faiss, .npz, or"),
        (
            ["-o", "items", "--format", "usearh"],
            "unknown --format 'usearh': did you mean",
        ),
        (["-o", "m.safetensors", "--format", "npz"], "is an input of this command"),
        (["-o", "items.npz", "--queries", "-1"], "--queries -1 has to be at least 0"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, arguments, message):
    code, out, err = run("export", "m.safetensors", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_formats_in_the_help_are_the_registered_ones():
    assert tuple(FORMATS) == EXPORTS
