"""A small saved model, to be taken apart and put together otherwise."""

import io
import json
import struct

import numpy as np
import safetensors.numpy
import scipy.sparse as sp

import safecf
from safecf import SAFER2
from safecf.models.files import sealed

DATA = sp.csr_matrix(np.random.default_rng(0).random((12, 8)) < 0.4, dtype=np.float32)


def good_model():
    model = SAFER2(factors=3, iterations=2, random_state=0)
    return model.fit(DATA, show_progress=False)


def saved(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


GOOD = saved(good_model())


def load(content):
    return safecf.load(io.BytesIO(content))


def taken_apart(content=GOOD):
    """Return the arrays and our header of a file."""
    length = struct.unpack("<Q", content[:8])[0]
    outer = json.loads(content[8 : 8 + length])
    return safetensors.numpy.load(content), json.loads(outer["__metadata__"]["safecf"])


def put_together(arrays, header):
    """Return a file of these arrays and this header, with the checksum that fits them.

    A header that is a text is left as it is.
    """
    text = header
    if isinstance(header, dict):
        header = {key: value for key, value in header.items() if key != "checksum"}
        text = sealed(json.dumps(header), arrays)
    return safetensors.numpy.save(arrays, metadata={"safecf": text})


def with_header(change):
    arrays, header = taken_apart()
    return put_together(arrays, change(header) or header)


def with_arrays(change):
    arrays, header = taken_apart()
    return put_together(change(arrays) or arrays, header)


def raw(header, body=b""):
    """Return a safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body
