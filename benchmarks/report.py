"""Pages of results: what was measured, with which command, on which machine, at which commit."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import safecf

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def machine() -> str:
    """Describe the CPU, its cores and the memory."""
    model = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        lines = cpu_info.read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, kernels {safecf._core.isas()[0]}"


def commit() -> str:
    """Name the commit, with a mark when anything but the results has changed since."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", ".", ":!docs/results")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


def short(value: float) -> str:
    """Write a number with three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def command() -> str:
    """Name the command that is running."""
    return f"python -m benchmarks {' '.join(sys.argv[1:])}"


def write(name: str, title: str, *blocks: str) -> Path:
    """Write a page that says how it was made."""
    origin = f"`{command()}` at commit `{commit()}`, on {machine()}."
    RESULTS.mkdir(parents=True, exist_ok=True)
    page = RESULTS / f"{name}.md"
    page.write_text("\n\n".join([f"# {title}", origin, *blocks]) + "\n")
    return page
