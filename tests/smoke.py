"""`python tests/smoke.py WHEEL`: a wheel, in an environment where it alone is installed.

Nothing but the standard library and safecf is imported, so that the environment needs no more than
the wheel asks for. `make wheel-test` runs it without a compiler in reach, cibuildwheel for every
system and Python.
"""

import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.metadata import version
from pathlib import Path

MOST_BYTES = 3_000_000
# Beside the modules, what the package reads, and what type checkers read.
WANTED = {
    "safecf/py.typed",
    "safecf/_core.pyi",
    "safecf/models/presets.toml",
    "safecf/serving/static/page.js",
}
# What a user waits for: the package, then its models with numpy, scipy and pyarrow.
IMPORTS = ("import safecf", "import safecf; safecf.SAFER2")
MOST_SECONDS = 0.3  # of the first, at its best
TIMED = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"
COMMANDS = (["--version"], ["doctor"], ["demo"])


def check_file(wheel: Path) -> None:
    """Raise if the wheel is too large, lacks files, or has files of the checkout."""
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")
    if size > MOST_BYTES:
        raise SystemExit(f"{wheel}: {size:,} bytes, at most {MOST_BYTES:,} are allowed")
    if not names >= WANTED:
        raise SystemExit(f"{wheel} lacks {sorted(WANTED - names)}; see wheel.packages")
    if tops != {"safecf", f"safecf-{version('safecf')}.dist-info"}:
        raise SystemExit(
            f"{wheel} has {sorted(tops)}: it should have safecf and its metadata alone"
        )


def run(*arguments: str) -> str:
    """Run this Python in an empty folder, and return what it prints; raise if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    if ended.returncode:
        output = f"{ended.stdout}{ended.stderr}"
        raise SystemExit(f"{' '.join(arguments)} ended with {ended.returncode}:\n{output}")
    return ended.stdout


def main(wheels: list[str]) -> None:
    """Check the file, where the package is imported from, and that its commands work."""
    for wheel in wheels:
        check_file(Path(wheel))
    installed = f"assert {sys.prefix!r} in safecf._core.__file__, safecf._core.__file__"
    run("-c", f"import safecf; {installed}")
    times = {code: min(float(run("-c", TIMED.format(code))) for _ in range(5)) for code in IMPORTS}
    for code, seconds in times.items():
        print(f"{code}: {seconds:.3f} s")
    if times[IMPORTS[0]] > MOST_SECONDS:
        raise SystemExit(f"{IMPORTS[0]} takes more than {MOST_SECONDS} s: what does it load?")
    for command in COMMANDS:
        begin = time.perf_counter()
        run("-m", "safecf", *command)
        print(f"safecf {' '.join(command)}: {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
