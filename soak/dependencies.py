"""`python -m soak.dependencies`: the suite with the oldest and the newest base dependencies.

Each gets an environment of its own under build/dependencies/, with the library's wheel and the
test tools, but without torch: tests that need it are skipped, and pytest says which.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "dependencies"
OLDEST = Path(__file__).with_name("oldest.txt")
# What the tests need, but for torch.
EXTRAS = "ann,serve,tune"
TOOLS = ["hypothesis", "nanobind", "pandas", "polars", "pytest", "pytest-xdist",
         "scikit-learn"]  # fmt: skip
# What tests the checkout, and not the library.
LEFT_OUT = ["reproduction", "soak", "test_benchmarks.py"]


def main(
    oldest: Annotated[str, typer.Option(help="Python for the oldest ones.")] = "python3.11",
    newest: Annotated[str, typer.Option(help="Python for the newest ones.")] = "python3",
    jobs: Annotated[int, typer.Option(help="Processes of pytest.")] = 2,
) -> None:
    """Run the suite with the oldest, then with the newest dependencies."""
    environments = {
        "oldest": environment("oldest", oldest, ["--constraint", str(OLDEST)]),
        "newest": environment("newest", newest, ["--upgrade", "--upgrade-strategy", "eager"]),
    }
    failed = [name for name, python in environments.items() if not passes(python, jobs)]
    if failed:
        typer.echo(f"the suite fails with the {' and the '.join(failed)} dependencies", err=True)
    raise typer.Exit(bool(failed))


def environment(name: str, interpreter: str, options: list[str]) -> Path:
    """Make a virtual environment with the library and the test tools; return its python."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    subprocess.run([*pip, *options, f"{ROOT}[{EXTRAS}]", *TOOLS], check=True)
    subprocess.run([str(python), "-m", "pip", "--disable-pip-version-check", "list"], check=True)
    return python


def passes(python: Path, jobs: int) -> bool:
    """Whether the suite passes."""
    left_out = [f"--ignore=tests/{each}" for each in LEFT_OUT]
    command = [str(python), "-m", "pytest", "-q", "-n", str(jobs), "--dist", "loadfile", *left_out]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    typer.run(main)
