"""Without pyspark, the error says what to install."""

import subprocess
import sys


def test_error_without_pyspark():
    code = "import sys; sys.modules['pyspark'] = None; import safecf.spark"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "ImportError: safecf.spark needs pyspark; try pip install 'safecf[spark]'" in run.stderr
