"""Small valid files of every kind that the library reads, made once per process."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from scipy.sparse import csr_matrix, random_array

from safecf import EASE, IALS, IALSPP, SAFER2, CVaRMF, Interactions, MultVAE, evaluate
from safecf.evaluation import Evaluation
from safecf.models import Recommender
from safecf.models.vae.encoder import Encoder
from safecf.models.vae.epochs import VAEEpoch
from safecf.split import strong_generalization

USERS, ITEMS, FACTORS = 14, 9, 4
SMALL: dict[str, Any] = {"factors": FACTORS, "iterations": 2, "random_state": 0, "num_threads": 1}


def matrix(seed: int = 0, users: int = USERS, items: int = ITEMS) -> csr_matrix:
    """Return a random matrix of weights in which every user and every item has something."""
    rng = np.random.default_rng(seed)
    drawn = csr_matrix(random_array((users, items), density=0.3, rng=rng)) + csr_matrix(
        (np.ones(users), (np.arange(users), np.arange(users) % items)), shape=(users, items)
    )
    return csr_matrix(drawn.astype(np.float32))


@cache
def interactions(names: bool = False) -> Interactions:
    """Return interactions, with ids that are strings if `names`."""
    if not names:
        return Interactions.from_csr(matrix())
    pairs = matrix(1).tocoo()
    users = [f"user {number} é" for number in pairs.row]
    return Interactions.from_frame(
        {"user": users, "item": pairs.col * 7, "weight": pairs.data}, weight="weight"
    )


@cache
def models() -> dict[str, Recommender]:
    """Return fitted models of several classes, with and without ids and groups, by name."""
    labels = np.arange(USERS) % 3
    made: dict[str, Recommender] = {
        "SAFER2": SAFER2(**SMALL).fit(interactions(), show_progress=False),
        "SAFER2 with ids and groups": SAFER2(**SMALL).fit(
            interactions(names=True), show_progress=False, user_groups=[f"g{n}" for n in labels]
        ),
        "IALS": IALS(**SMALL).fit(interactions(names=True), show_progress=False),
        "CVaRMF": CVaRMF(**SMALL, optimizer="adam").fit(interactions(), show_progress=False),
        "EASE": EASE(num_threads=1).fit(interactions(), show_progress=False),
        "MultVAE": _mult_vae(),
    }
    return made


def _mult_vae() -> MultVAE:
    """Return a model as if trained; torch takes seconds to load."""
    rng = np.random.default_rng(0)
    model = MultVAE(FACTORS, random_state=0, num_threads=1)
    shapes = Encoder.shapes(ITEMS, FACTORS)
    model.encoder = Encoder(
        **{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    )
    model.shape = (USERS, ITEMS)
    model.item_factors = rng.normal(size=(ITEMS, FACTORS)).astype(np.float32)
    model.user_factors = model.encoder(interactions().users)
    model.history = [VAEEpoch(1, 0.5, 0.4, 0.1, 0.1, seconds={"train": 0.1})]
    return model


@cache
def model_files() -> dict[str, bytes]:
    """Return the files of the models, by name."""
    found = {}
    for name, model in models().items():
        file = io.BytesIO()
        model.save(file)
        found[name] = file.getvalue()
    return found


TRAINED: dict[str, Callable[[], Any]] = {
    "SAFER2": lambda: SAFER2(**SMALL),
    "IALSPP": lambda: IALSPP(**SMALL, block_size=2),
    "CVaRMF": lambda: CVaRMF(**SMALL, optimizer="adam"),
}


@cache
def evaluations() -> list[Evaluation]:
    """Return evaluations of two models, one with groups."""
    large = matrix(2, users=60, items=20)
    pairs = large.tocoo()
    made = []
    for groups in (None, np.arange(60) % 4):
        split = strong_generalization(
            pairs.row, pairs.col, heldout=10, min_interactions=1, groups=groups, seed=1
        )
        model = IALS(**SMALL).fit(split.train, show_progress=False)
        made.append(evaluate(model, split, (2, 5), (0.3, 1.0), ("recall", "auc")))
    return made


@cache
def evaluation_records() -> list[Any]:
    """Return the evaluations as JSON values, without what is computed again."""
    records = [json.loads(json.dumps(each.to_dict(resamples=20))) for each in evaluations()]
    for each in records:
        each["aggregates"] = {}
    return records


ROWS = [
    ("user", "item", "rating", "weight", "time", "label"),
    ("7", "a b", "4", "1.5", "2024-05-01 13:00:00", "x"),
    ("8", "c", "5", "1", "2024-05-01 14:00:00", "y"),
    ("7", "ä", "3.5", "2e3", "2024-05-02", "x"),
    ("", "d", "1", "0", "1999-12-31 23:59:59", "z"),
    ("9", "a b", "5", "0.25", "2024-05-01 13:00:01.5", "x"),
]


def text(separator: str = ",", end: str = "\n", quote: str = "") -> str:
    """Return rows as delimited text; the user without an id is left out."""
    rows = [row for row in ROWS if row[0]]
    return "".join(separator.join(f"{quote}{field}{quote}" for field in row) + end for row in rows)


@cache
def tables() -> list[bytes]:
    """Return Parquet files of the rows, in several types, encodings and compressions."""
    header, *rows = [row for row in ROWS if row[0]]
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    numbers = {name: pa.array(columns[name]).cast(pa.float64()) for name in ("rating", "weight")}
    times = pa.array(range(len(rows)), pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    plain = pa.table({**columns, **numbers, "time": times})
    ids = pa.array([int(each) for each in columns["user"]])
    coded = pa.table(
        {**columns, **numbers, "user": ids, "item": pa.array(columns["item"]).dictionary_encode()}
    )
    found = []
    for table in (plain, coded):
        for options in (
            {},
            {"compression": "zstd"},
            {"compression": None, "use_dictionary": False},
        ):
            file = io.BytesIO()
            pyarrow.parquet.write_table(table, file, **options)
            found.append(file.getvalue())
    return found


def zipped(content: bytes) -> bytes:
    """Return an archive with one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("clicks.csv", content)
    return file.getvalue()


def zstandard(content: bytes) -> bytes:
    """Return a frame of zstd."""
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": zipped,
    ".zst": zstandard,
}
