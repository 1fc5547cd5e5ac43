"""`load_pandas`: pandas is loaded where Ctrl-C works, not within pyarrow."""

import functools
from importlib import import_module


@functools.cache
def load_pandas() -> None:
    """Import pandas, if it is installed.

    pyarrow imports it at its first conversion from or to numpy, in C code that drops exceptions: a
    Ctrl-C in this second would be lost.
    """
    try:
        for name in ("pandas", "pyarrow.pandas_compat"):
            import_module(name)
        _ = import_module("pyarrow.lib")._pandas_api.pd
    except (ImportError, AttributeError):
        pass  # without pandas, or with a version that pyarrow does not take, nothing is imported
