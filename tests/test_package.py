"""The public names of the package, which are imported when they are asked for."""

import subprocess
import sys

import pytest

import safecf


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
