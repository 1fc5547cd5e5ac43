"""Commands in a process of their own."""

import subprocess
import sys

from tests.cli.conftest import COLUMNS

MAIN = "from safecf.cli import main; main()"
GIVEN = (*COLUMNS, "--heldout", "40", "-q", "-m", "ials:factors=4,iterations=2")


def start(*arguments, code=MAIN, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=False, timeout=120, text=True, **options)
