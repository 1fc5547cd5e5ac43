"""A new user's whole way: from a Parquet file with string ids to a service."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import safecf
from safecf import datasets
from tests.serving.service import separate

COLUMNS = ("--user", "reader", "--item", "book")


@pytest.fixture
def loans():
    """Return a Parquet file of loans; readers have texts of digits."""
    pairs = datasets.synthetic(400, 90, 8000, tastes=3).matrix.tocoo()
    order = np.random.default_rng(0).permutation(pairs.nnz)
    columns = {
        "reader": [f"{user:03}" for user in pairs.row[order]],
        "book": [f"Book {item:02}, vol. 1" for item in pairs.col[order]],
    }
    pyarrow.parquet.write_table(pa.table(columns), "loans.parquet")
    return "loans.parquet"


def test_from_a_file_to_a_service(done, read, loans):
    reader, given = "007", (loans, *COLUMNS)
    summary = read("data", "summary", *given)
    data = safecf.Interactions.from_parquet(loans, user="reader", item="book")
    sizes = {"users": data.num_users, "items": data.num_items, "interactions": data.nnz}
    assert {name: summary[name] for name in sizes} == sizes

    start = ("-m", "safer2:factors=8,iterations=4", "--trials", 3, "--heldout", 60, "-q")
    (search,) = read("tune", *given, *start)["tuning"]["searches"]
    assert len(search["trials"]) == 3
    best = search["trials"][search["best"]]["options"]
    options = {"factors": 8, "iterations": 4}
    options |= {name: value for name, value in best.items() if name in search["ranges"]}
    spec = "safer2:" + ",".join(f"{name}={value}" for name, value in options.items())

    models = ("-m", "ials:factors=8", "-m", spec, "--heldout", 60, "-q")
    out = done("compare", *given, *models, "--report", "report.html", "--save", "models")
    assert "compared with IALS" in " ".join(out.split())
    assert "</html>" in Path("report.html").read_text()
    names = sorted(path.name for path in Path("models").iterdir())
    assert names == ["ials.safetensors", "safer2.safetensors"]

    fitted = read("fit", *given, "-m", spec, "-o", "model.safetensors", "-q")
    assert (fitted["users"], fitted["items"]) == (data.num_users, data.num_items)

    file = "model.safetensors"
    written = read("recommend", file, *given, "-n", 5, "-o", "best.parquet", "-q")
    assert (written["users"], written["cold_users"]) == (data.num_users, 0)
    found = pyarrow.parquet.read_table("best.parquet").to_pylist()
    assert len(found) == written["rows"] == 5 * data.num_users
    users, items = data.to_csr().nonzero()
    had = {*zip(data.user_ids[users], data.item_ids[items], strict=True)}
    assert not had & {(row["user"], row["item"]) for row in found}
    model = safecf.load(file)
    mine = [row for row in found if row["user"] == reader]
    assert model.recommend_frame([reader], 5, user_items=data).to_pylist() == mine

    similar = model.similar_items_frame(found[0]["item"], 3).to_pylist()
    assert read("similar", file, found[0]["item"], "-n", 3) == similar

    expected = model.explain_frame(reader, mine[0]["item"], user_items=data).to_pylist()
    assert read("explain", file, *given, reader, mine[0]["item"]) == expected

    history = data.item_ids[data.to_csr()[data.user_ids == reader].indices].tolist()
    with separate("model.safetensors") as service:
        client = service.client()
        answer = client.post("/recommend", user=reader, exclude=history, k=5).json
        folded = client.post("/recommend", history=history, k=5).json
        assert service.end() == (0, "")
    assert [(each["id"], each["score"]) for each in answer["items"]] == [
        (row["item"], pytest.approx(row["score"])) for row in mine
    ]
    again = model.recommend_frame([reader], 5, user_items=data, recalculate_user=True)
    assert [each["id"] for each in folded["items"]] == again["item"].to_pylist()
