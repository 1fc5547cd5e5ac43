"""Files with changed bytes are refused, or load as if nothing had changed."""

import importlib.util
import json

import numpy as np
import pytest

from safecf import EASE, SAFER2, FileFormatError, Interactions, MultVAE
from safecf.models.checkpoint import read_checkpoint
from safecf.models.files import checksum
from tests.models.saved import DATA, GOOD, load, put_together, saved, taken_apart


def without_checksum(content):
    arrays, header = taken_apart(content)
    del header["checksum"]
    return put_together(arrays, json.dumps(header))


def test_a_checksum_is_demanded_from_format_2_on(tmp_path):
    arrays, header = taken_apart()
    with pytest.raises(FileFormatError, match="its checksum does not fit its contents"):
        load(without_checksum(GOOD))
    with pytest.raises(FileFormatError, match="its checksum does not fit its contents"):
        load(put_together(arrays, json.dumps(header | {"format": 1})))
    del header["checksum"]
    assert load(put_together(arrays, json.dumps(header | {"format": 1}))).factors == 3
    path = tmp_path / "run.safetensors"
    model = SAFER2(factors=3, iterations=1, random_state=0)
    model.fit(DATA, show_progress=False, checkpoint=path)
    path.write_bytes(without_checksum(path.read_bytes()))
    with pytest.raises(FileFormatError, match="its checksum does not fit its contents"):
        model.fit(DATA, show_progress=False, resume=path)


def test_the_checksum_covers_names_types_and_shapes():
    one = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = [{"a": one}, {"b": one}, {"a": one.reshape(3, 2)}, {"a": one.view(np.int32)}]
    arrays += [{"a": one, "b": one[:0]}, {"a": one + 1}, {}]
    sums = [checksum("{}", each) for each in arrays] + [checksum("{} ", {"a": one})]
    assert len(set(sums)) == len(sums)
    both = {"a": one, "b": one + 1}
    assert checksum("{}", both) == checksum("{}", dict(reversed(both.items())))


def one_byte_changed(content):
    """Yield the content with each byte replaced by four others."""
    for position, byte in enumerate(content):
        for other in {byte ^ 1, byte ^ 0x80, 0, ord(" ")} - {byte}:
            yield content[:position] + bytes([other]) + content[position + 1 :]


def everything(model):
    parts = {}
    for key, value in vars(model).items():
        arrays = value if isinstance(value, tuple) else (value,)
        parts[key] = [
            (each.dtype, each.shape, each.tobytes()) if isinstance(each, np.ndarray) else each
            for each in arrays
        ]
    return type(model), parts


def small_files():
    """Return a small file of each kind; that of MultVAE if there is torch."""
    data = Interactions.from_csr(DATA[:3, :3] + DATA[3:6, :3], ["a", "é", "c"], [3, 1, 2])
    options = {"iterations": 1, "random_state": 0}
    fits = {"show_progress": False}
    files = [
        saved(SAFER2(2, **options).fit(data, user_groups=["x", "y", "y"], **fits)),
        saved(EASE().fit(data, **fits)),
    ]
    if importlib.util.find_spec("torch"):
        files.append(saved(MultVAE(2, device="cpu", **options).fit(data, **fits)))
    return files


def test_no_changed_byte_changes_what_is_loaded():
    for content in small_files():
        expected, refused, harmless = everything(load(content)), 0, 0
        for changed_content in one_byte_changed(content):
            try:
                found = load(changed_content)
            except FileFormatError:
                refused += 1
                continue
            harmless += 1
            assert everything(found) == expected
        assert refused > 3 * len(content) > 100 * harmless


def test_no_changed_byte_of_a_checkpoint_changes_what_is_read(tmp_path):
    path = tmp_path / "run.safetensors"
    small = DATA[:3, :3] + DATA[3:6, :3]
    SAFER2(2, iterations=1, random_state=0).fit(small, show_progress=False, checkpoint=path)
    content = path.read_bytes()

    def found():
        run, state, history = read_checkpoint(path)
        return vars(run), everything(state), history

    expected, refused, harmless = found(), 0, 0
    for changed_content in one_byte_changed(content):
        path.write_bytes(changed_content)
        try:
            loaded = found()
        except FileFormatError:
            refused += 1
            continue
        harmless += 1
        assert loaded == expected
    assert refused > 3 * len(content) > 100 * harmless
