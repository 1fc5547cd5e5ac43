"""What all tests share: where the real data lies, and how hypothesis runs."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `ci`: the same 100 examples on every run. `many`: 20 times as many. `soak`: new ones, for hours.
# A test with a number of its own keeps it.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **COMMON)
settings.register_profile("many", max_examples=2_000, derandomize=True, **COMMON)
settings.register_profile("soak", max_examples=20_000, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("SAFECF_PROFILE", "ci"))

# Without a GPU, Triton's kernels are run by its interpreter; it is read at Triton's import.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of the real data sets, which may not be passed on with the project."""
    folder = Path(os.environ.get("SAFECF_DATA", ""))
    if not (folder / "ml-1m.parquet").is_file():
        pytest.skip("no real data: set SAFECF_DATA to the folder of ml-1m.parquet")
    return folder


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    lines = [
        "slow: takes long; left out by `make test`, run by `make test-slow`",
        "gpu: needs a GPU",
    ]
    for line in lines:
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, so that no process waits for another at the end."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: ("spark" not in item.path.parts, -tests[item.path]))
