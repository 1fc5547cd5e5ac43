"""The public names of the package, which are imported when they are asked for."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import safecf

ROOT = Path(__file__).parents[1]
# Extras, and what pyarrow imports when it can.
HEAVY = {
    "fastapi",
    "matplotlib",
    "optuna",
    "pandas",
    "polars",
    "pyspark",
    "torch",
    "triton",
    "usearch",
}


def test_all_names_are_there():
    for name in safecf.__all__:
        assert getattr(safecf, name) is not None
        assert name in dir(safecf)
    assert safecf.load == safecf.Recommender.load
    with pytest.raises(AttributeError, match="module 'safecf' has no attribute 'SAFER3'"):
        safecf.SAFER3  # noqa: B018


def in_new_process(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_report_is_a_function_whatever_was_imported_before():
    in_new_process(
        "import safecf.reporting.page, safecf; from safecf.reporting import report\n"
        "assert safecf.report is report and callable(report)"
    )


def test_packages_are_found_as_attributes():
    in_new_process("import safecf; safecf.measures.tail_mean; safecf.models.MODELS")


def test_data_sets_and_splits_are_modules():
    in_new_process(
        "from safecf.datasets import load, read, synthetic\n"
        "from safecf.split import strong_generalization, temporal\n"
        "import safecf; assert safecf.datasets.load is load"
    )


@pytest.mark.parametrize("names", ["()", "safecf.__all__"])
def test_no_name_needs_what_is_optional(names):
    in_new_process(
        f"import safecf, sys\nfor name in {names}: getattr(safecf, name)\n"
        f"assert not {HEAVY} & set(sys.modules), {HEAVY} & set(sys.modules)"
    )


def test_the_package_alone_needs_no_numpy():
    in_new_process(
        "import safecf, sys; assert not {'numpy', 'scipy', 'pyarrow'} & set(sys.modules)"
    )


def test_the_version_is_the_last_release_or_leads_to_the_next():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    released = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited[1] == released[0]
    next_version, _, unreleased = version.partition(".dev")
    last, following = ([int(part) for part in each.split(".")] for each in (cited[1], next_version))
    assert following > last if unreleased else following == last
