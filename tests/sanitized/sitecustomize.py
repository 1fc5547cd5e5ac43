"""With this folder on PYTHONPATH, Python loads the native core from the folder SAFECF_CORE."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

(path,) = Path(os.environ["SAFECF_CORE"]).glob("_core*.so")
spec = spec_from_file_location("safecf._core", path)
assert spec is not None
assert spec.loader is not None
sys.modules["safecf._core"] = module = module_from_spec(spec)
spec.loader.exec_module(module)
