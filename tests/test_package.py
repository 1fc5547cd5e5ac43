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


@pytest.mark.parametrize(
    "code",
    [
        "import safecf.reporting.page; from safecf.reporting import report\n"
        "assert safecf.report is report and callable(report)",
        "safecf.measures.tail_mean; safecf.models.MODELS",
        "from safecf.datasets import load; from safecf.split import temporal\n"
        "assert safecf.datasets.load is load and safecf.split.temporal is temporal",
        "assert not {'numpy', 'scipy', 'pyarrow'} & set(sys.modules)",
    ],
)
def test_names_are_found_whatever_was_imported_before(code):
    in_new_process(f"import safecf, sys\n{code}")


@pytest.mark.parametrize("names", ["()", "safecf.__all__"])
def test_no_name_needs_what_is_optional(names):
    in_new_process(
        f"import safecf, sys\nfor name in {names}: getattr(safecf, name)\n"
        f"assert not {HEAVY} & set(sys.modules), {HEAVY} & set(sys.modules)"
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
