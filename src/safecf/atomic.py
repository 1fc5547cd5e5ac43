"""Atomic replacement of files."""

import os
import secrets
from pathlib import Path


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to the file; if that fails or is interrupted, its old content stays."""
    target = Path(path).resolve()
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            reason = f"{problem.strerror or problem}; what was there before is untouched"
            raise OSError(problem.errno, f"cannot write the file: {reason}", str(target)) from None
        raise
