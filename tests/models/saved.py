"""Small saved models and checkpoints, to be taken apart and put together otherwise."""

import io
import json
import struct
from functools import cache
from pathlib import Path

import numpy as np
import safetensors.numpy
import scipy.sparse as sp

import safecf
from safecf import EASE, SAFER2, CVaRMF, Interactions
from safecf.models.files import sealed

OLD = Path(__file__).parent / "v0_1"
DATA = sp.csr_matrix(np.random.default_rng(0).random((12, 8)) < 0.4, dtype=np.float32)
NAMED = Interactions.from_csr(DATA, [f"é{n}" for n in range(12)], np.arange(8) * 3)
SMALL = {"factors": 3, "iterations": 2, "random_state": 0}
ADAM = {**SMALL, "optimizer": "adam", "step_size": 0.05}


@cache
def trained(kind):
    """Return a small model of this kind, which nobody may change."""
    if kind == "groups":
        groups = {"user_groups": [1, 1, 2, 2] * 3, "user_weight": np.arange(12) % 3}
        return SAFER2(**SMALL).fit(NAMED, show_progress=False, **groups)
    if kind == "items":
        return EASE().fit(NAMED, show_progress=False)
    if kind == "network":  # trained by version 0.1, so that the tests need no torch
        model = safecf.load(OLD / "MultVAE")
        model.item_popularity = np.arange(8, dtype=np.float32)
        return model
    return SAFER2(**SMALL).fit(DATA, show_progress=False)


@cache
def good(kind="plain"):
    """Return the file of `trained`."""
    return saved(trained(kind))


@cache
def checkpoint(folder):
    path = Path(folder, "run.safetensors")
    CVaRMF(**ADAM).fit(NAMED, show_progress=False, checkpoint=path)
    return path.read_bytes()


def saved(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def load(content):
    return safecf.load(io.BytesIO(content))


def taken_apart(content):
    """Return the arrays and our header of a file."""
    length = struct.unpack("<Q", content[:8])[0]
    outer = json.loads(content[8 : 8 + length])
    return safetensors.numpy.load(content), json.loads(outer["__metadata__"]["safecf"])


def put_together(arrays, header, *, seal=True):
    """Return a file of these arrays and this header; `seal` makes the checksum fit them.

    A header that is a text is left as it is.
    """
    text = header if isinstance(header, str) else json.dumps(header)
    if seal and isinstance(header, dict):
        rest = {key: value for key, value in header.items() if key != "checksum"}
        text = sealed(json.dumps(rest), arrays)
    return safetensors.numpy.save(arrays, metadata={"safecf": text})


def raw(header, body=b""):
    """Return a safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body
