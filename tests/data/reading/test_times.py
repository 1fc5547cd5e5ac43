"""Times in every format are converted to the same moment; errors name the row."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import datasets
from safecf.data.reading.times import to_datetime64, to_timestamps

MOMENT = datetime.datetime(2024, 5, 1, 11, tzinfo=datetime.UTC)
SECONDS = int(MOMENT.timestamp())
DAY = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)

WRITTEN = {
    "seconds": pa.array([SECONDS]),
    "small seconds": pa.array([SECONDS], pa.uint32()),
    "fractions": pa.array([float(SECONDS)]),
    "texts of seconds": pa.array([str(SECONDS)]),
    "texts of fractions": pa.array([f"{SECONDS}.0"]),
    "ISO-8601": pa.array(["2024-05-01T11:00:00"]),
    "with a space": pa.array(["2024-05-01 11:00"], pa.large_string()),
    "UTC": pa.array(["2024-05-01T11:00:00Z"]),
    "a zone": pa.array(["2024-05-01T13:00:00+02:00"]),
    "nanoseconds": pa.array(["2024-05-01T11:00:00.000000000"]),
    "timestamp[s]": pa.array([MOMENT], pa.timestamp("s")),
    "timestamp[ms, UTC]": pa.array([MOMENT], pa.timestamp("ms", "UTC")),
    "date32": pa.array([DAY.date()], pa.date32()),  # midnight
    "date64": pa.array([DAY.date()], pa.date64()),
    "timestamp[ns, Berlin]": pa.array([MOMENT], pa.timestamp("ns", "Europe/Berlin")),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_format_of_a_time(kind):
    found, moment = to_timestamps(WRITTEN[kind]), DAY if kind.startswith("date") else MOMENT
    assert found.type == pa.timestamp("us")
    assert found.to_numpy().tolist() == [moment.replace(tzinfo=None)]


def test_files_with_different_time_units(tmp_path):
    for unit in ("ms", "us"):
        when = pa.array([MOMENT], pa.timestamp(unit))
        table = pa.table({"user": [unit], "item": ["x"], "when": when})
        pyarrow.parquet.write_table(table, tmp_path / f"{unit}.parquet")
    (tmp_path / "text.csv").write_text("user,item,when\nx,x,2024-05-01T11:00:00\n")
    log = datasets.read(tmp_path, timestamp="when")
    assert log.timestamps.dtype == "datetime64[us]"
    assert log.timestamps.tolist() == [MOMENT.replace(tzinfo=None)] * 3


def test_arrays_of_any_kind():
    hours = np.array(["2024-05-01T11"], dtype="datetime64[h]")
    for values in ([MOMENT], hours, [str(SECONDS)], ["2024-05-01T11:00"], np.array([SECONDS])):
        assert to_datetime64(values, "times").tolist() == [MOMENT.replace(tzinfo=None)]
    for wrong in ({}, 10**30):
        with pytest.raises(TypeError, match="times: "):
            to_datetime64([wrong], "times")
