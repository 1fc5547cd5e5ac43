"""Every parser of bytes, as a function of bytes that returns, or raises `Refused`.

`python -m soak.parsers NAME` fuzzes one of them, guided by coverage; `soak.parsers` says how.
"""

import io
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors.numpy import load as parse

from safecf import IALS, SAFER2, Evaluation, Recommender
from safecf.cli.inputs import make_model
from safecf.data.reading.delimited import delimited_source
from safecf.data.reading.layout import Layout
from safecf.data.reading.sources import parquet_source
from safecf.data.reading.times import to_datetime64
from safecf.data.splits.log import Log
from safecf.evaluation import parse_metric
from safecf.models import files
from safecf.models.checkpoint import read_checkpoint
from safecf.tuning.space import parse_range
from soak import samples
from soak.files import checkpoint_files
from soak.guard import LONGEST_MESSAGE, refused_or

ROLES: dict[str, Any] = {
    "rating": "rating",
    "weight": "weight",
    "timestamp": "time",
    "group": "label",
}


@dataclass(frozen=True)
class Target:
    """A parser of bytes, and samples to begin with."""

    parse: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    prepare: Callable[[], None] = lambda: None
    is_json: bool = False
    echo: int = 0  # how often a message may repeat the bytes: those that a user has typed

    def __call__(self, content: bytes) -> None:
        """Parse; an error of ours is `Refused`, any other one is a defect."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.prepare()
            refused_or(
                lambda: self.parse(content), longest=LONGEST_MESSAGE + self.echo * len(content)
            )


def _model(content: bytes) -> object:
    return Recommender.load(io.BytesIO(content))


class _Checkpoint:
    """Read checkpoints from a file in memory, which has no name that could be left behind."""

    def __init__(self) -> None:
        self.file = self.process = -1

    def open(self) -> None:
        """Make the file of this process; nothing may be written while a checkpoint is read."""
        if self.process != os.getpid():
            self.file, self.process = os.memfd_create("checkpoint"), os.getpid()

    def __call__(self, content: bytes) -> object:
        """Read and validate."""
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, content, 0)
        return read_checkpoint(f"/proc/self/fd/{self.file}")


class _Header:
    """Read a file whose arrays are valid, with any JSON in its header.

    It is written by our own writer, so that its checksum fits.
    """

    def __init__(self, content: Callable[[], bytes], kind: str, read: Callable[[bytes], object]):
        self.content, self.kind, self.read = content, kind, read

    def seed(self) -> bytes:
        """Return the valid header."""
        content = self.content()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["safecf"])
        header.pop("checksum", None)
        return json.dumps(header).encode()

    def __call__(self, content: bytes) -> object:
        """Read; what our own writer cannot write is left out."""
        file = io.BytesIO()
        try:
            header = json.loads(content)
            header.pop("kind", None)
            header.pop("checksum", None)
            files.write(file, self.kind, header, parse(self.content()))
        except Exception:
            return None
        return self.read(file.getvalue())


def _evaluation(content: bytes) -> object:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if isinstance(values, dict):
        values.pop("checksum", None)
    read = Evaluation.from_dict(values)
    return repr(read), read.table() if len(content) % 8 == 0 else ""


def _evaluation_seeds() -> list[bytes]:
    records = [dict(each) for each in samples.evaluation_records()]
    for each in records:
        each.pop("checksum", None)
        each["training"] = {}
    return [json.dumps(each).encode() for each in records]


SEPARATORS = (",", ";", "\t", "::")


def _text(content: bytes) -> object:
    """Read delimited text; the first byte chooses separator, header, encoding and columns."""
    flags, content = content[:1] or b"\0", content[1:]
    bits = flags[0]
    layout = Layout(
        "user" if not bits & 4 else 0,
        "item" if not bits & 4 else 1,
        **(ROLES if bits & 8 and not bits & 4 else {}),
        separator=SEPARATORS[bits & 3],
        header=not bits & 4,
        encoding=("utf8", "latin-1", "utf-16", "utf-8-sig")[bits >> 4 & 3],
    )
    buffer = pa.py_buffer(content)
    source = delimited_source("text", lambda: pa.BufferReader(buffer), layout)
    return _log(source, layout)


def _text_seeds() -> list[bytes]:
    found = []
    for at, separator in enumerate(SEPARATORS):
        for bits, encoding in ((8, "utf8"), (16, "latin-1"), (40, "utf-16"), (48, "utf-8-sig")):
            found.append(bytes([at | bits]) + samples.text(separator).encode(encoding))
            found.append(bytes([at | bits]) + samples.text(separator, "\r\n", '"').encode(encoding))
        found.append(bytes([at | 4]) + b"1%b2\n3%b4\n".replace(b"%b", separator.encode()))
    return found


def _table(content: bytes) -> object:
    layout = Layout(**(ROLES if len(content) % 2 else {}))
    reader: Any = pa.BufferReader(content)
    return _log(parquet_source(reader, layout), layout)


def _log(source: Any, layout: Layout) -> object:
    log = Log.from_sources([source], layout)
    return log.interactions()


def _times(content: bytes) -> object:
    """Read times, one per line; lines of numbers are integers or floats."""
    lines = content.decode(errors="replace").split("\n")
    values: list[Any] = lines
    if content[:1] == b"#":
        values = [_number(line) for line in lines]
    found = to_datetime64(values, "timestamps")
    assert found.shape == (len(lines),)
    assert not np.isnat(found).any()
    return found


def _number(text: str) -> float | int:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return 0


def _model_spec(content: bytes) -> object:
    name, model = make_model(content.decode(errors="replace").replace(".safetensors", ""))
    return name, repr(model)


def _metric_spec(content: bytes) -> object:
    name, cutoff = parse_metric(content.decode(errors="replace"))
    assert cutoff is None or cutoff > 0
    return name


def _range_spec(content: bytes) -> object:
    text = content.decode(errors="replace")
    _, found = parse_range(text, (SAFER2 if len(text) % 2 else IALS)().get_params())
    return found.grid(), found.wider(), str(found)


checkpoints = _Checkpoint()
model_headers = _Header(lambda: samples.model_files()["SAFER2"], files.MODEL, _model)
checkpoint_headers = _Header(lambda: checkpoint_files()["CVaRMF"], files.CHECKPOINT, checkpoints)

TARGETS = {
    "models": Target(_model, lambda: list(samples.model_files().values())),
    "model-headers": Target(model_headers, lambda: [model_headers.seed()], is_json=True),
    "checkpoints": Target(checkpoints, lambda: list(checkpoint_files().values()), checkpoints.open),
    "checkpoint-headers": Target(
        checkpoint_headers, lambda: [checkpoint_headers.seed()], checkpoints.open, is_json=True
    ),
    "evaluations": Target(_evaluation, _evaluation_seeds, is_json=True),
    "text": Target(_text, _text_seeds),
    "parquet": Target(_table, samples.tables),
    "times": Target(
        _times,
        lambda: [
            b"2024-05-01 13:00:00\n2024-05-02",
            b"2024-05-01T13:00:00+02:00",
            b"#1700000000\n5",
            b"#1e9\n2.5",
            b"1714568400\n-5.25",
            b"2024-05-01T13:00:00.123456789Z",
        ],
    ),
    "model-specs": Target(
        _model_spec,
        lambda: [
            b"safer2:factors=32,bandwidth=0.15,kernel=gaussian",
            b"ials",
            b"cvarmf:optimizer=adam,step_size=1e-2,ridge_in_risk=True",
            b"ease:regularization=200",
            b"multvae:device=cuda:0,dropout=.5",
            b"ialspp:block_size=[8],init_std='a'",
            b"safer2pp:bandwidth=inf,random_state=None",
        ],
        echo=9,
    ),
    "metric-specs": Target(_metric_spec, lambda: [b"recall@20", b"auc", b"ndcg", b"map@1"], echo=9),
    "ranges": Target(
        _range_spec,
        lambda: [
            b"factors=32..128",
            b"bandwidth=0.05..0.5",
            b"kernel=gaussian,logistic",
            b"tail=-1..1",
            b"regularization=0..1e-3",
        ],
        echo=9,
    ),
}
