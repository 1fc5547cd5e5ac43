"""How fast and how steady the service is under load; client and service share the machine."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from benchmarks import report
from benchmarks.matrices import long_tailed
from safecf.models import SAFER2

HOST = "127.0.0.1"
# fold-in of 100 items, d = 256, 20,000 items, top 20
ITEMS, FACTORS, HISTORY, TOP = 20_000, 256, 100, 20


class Load(NamedTuple):
    """What clients have seen: latencies in ms, seconds, wrong answers; memory in MiB.

    `cpu` are the seconds of CPU time that the service and the clients took.
    """

    clients: int
    latency: np.ndarray
    seconds: float
    errors: int
    memory: tuple[float, float]
    cpu: tuple[float, float]

    def row(self) -> list[str]:
        """Return a row of the table."""
        p50, p99 = np.percentile(self.latency, [50, 99])
        return [
            f"{self.clients}",
            f"{self.latency.size:,}",
            f"{self.latency.size / self.seconds:,.0f}",
            f"{p50:.2f}",
            f"{p99:.2f}",
            f"{self.latency.max():.1f}",
            f"{self.errors}",
            " + ".join(f"{1000 * each / self.latency.size:.2f}" for each in self.cpu),
            f"{self.memory[0]:.0f} -> {self.memory[1]:.0f}",
        ]


def save_model(folder: Path, items: int, factors: int) -> tuple[Path, Any]:
    """Train shortly, and save; the numbers do not matter for the speed."""
    model = SAFER2(factors, iterations=1, random_state=0)
    model.fit(long_tailed(2000, items, 200_000), show_progress=False)
    path = folder / "model.safetensors"
    model.save(path)
    return path, model


def requests_of(model: Any, items: int, count: int = 64) -> list[tuple[bytes, list[int]]]:
    """Return requests as they are sent, and the right answers."""
    import scipy.sparse  # noqa: PLC0415

    rng, found = np.random.default_rng(0), []
    for _ in range(count):
        history = np.sort(rng.choice(items, HISTORY, replace=False))
        row = scipy.sparse.csr_matrix(
            (np.ones(HISTORY, np.float32), history, [0, HISTORY]), shape=(1, items)
        )
        ids, _ = model.recommend(0, row, N=TOP, recalculate_user=True)
        body = json.dumps({"history": history.tolist(), "k": TOP}).encode()
        head = f"POST /recommend HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        found.append((head.encode() + body, ids.tolist()))
    return found


async def client(
    port: int, requests: list[tuple[bytes, list[int]]], until: float, seed: int
) -> tuple[list[float], int]:
    """Send one request after the other on one connection; every 16th answer is checked."""
    reader, writer = await asyncio.open_connection(HOST, port)
    latency, errors, number = [], 0, seed
    while time.perf_counter() < until:
        sent, right = requests[number % len(requests)]
        begin = time.perf_counter()
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        latency.append(1000 * (time.perf_counter() - begin))
        if not head.startswith(b"HTTP/1.1 200"):
            errors += 1
        elif number % 16 == 0:
            errors += [each["id"] for each in json.loads(body)["items"]] != right
        number += 1
    writer.close()
    return latency, errors


def resident(pid: int) -> float:
    """Return the resident memory of a process, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    port: int, pid: int, requests: list[tuple[bytes, list[int]]], clients: int, seconds: float
) -> Load:
    """Load the service with clients for some seconds, after a tenth of them as a warm-up."""

    async def load(span: float) -> tuple[list[float], int]:
        until = time.perf_counter() + span
        each = [client(port, requests, until, 7 * number) for number in range(clients)]
        found = await asyncio.gather(*each)
        return [one for latency, _ in found for one in latency], sum(e for _, e in found)

    await load(max(1.0, seconds / 10))
    before, begin = resident(pid), time.perf_counter()
    spent = cpu_seconds(pid), time.process_time()
    latency, errors = await load(seconds)
    taken = time.perf_counter() - begin
    cpu = cpu_seconds(pid) - spent[0], time.process_time() - spent[1]
    return Load(clients, np.array(latency), taken, errors, (before, resident(pid)), cpu)


def start(path: Path) -> tuple[subprocess.Popen[str], int]:
    """Start the service in a process of its own; return its port."""
    command = [sys.executable, "-c", "from safecf.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "serve", str(path), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = ""
    while "http://" not in line:
        line = process.stderr.readline()
        if not line:
            raise SystemExit("the service did not start")
    return process, int(line.split(f"{HOST}:")[1].split()[0])


def main(
    seconds: Annotated[float, typer.Option(help="Length of each load.")] = 30,
    steady: Annotated[float, typer.Option(help="Length of the last load, for the memory.")] = 600,
    items: Annotated[int, typer.Option(help="Items of the model.")] = ITEMS,
    factors: Annotated[int, typer.Option(help="Factors of the model.")] = FACTORS,
    note: Annotated[str, typer.Option(help="What else ran on the machine.")] = "",
) -> None:
    """Load the service with 1, 8 and 32 clients, and with 32 for a long time."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, model = save_model(Path(folder), items, factors)
        asked = requests_of(model, items)
        del model
        process, port = start(path)
        try:
            for clients, span in ((1, seconds), (8, seconds), (32, seconds), (32, steady)):
                if span <= 0:
                    continue
                found = asyncio.run(measure(port, process.pid, asked, clients, span))
                rows.append([*found.row(), f"{span:g}"])
                print(rows[-1], flush=True)
        finally:
            process.terminate()
            code = process.wait(60)
    if code:
        raise SystemExit(f"the service ended with {code}")
    header = ["clients", "answers", "answers/s", "p50, ms", "p99, ms", "max, ms", "errors"]
    header += ["CPU ms per answer: service + client"]
    page = report.write(
        "serving",
        "The service under load",
        f"`safecf serve` with SAFER2, d = {factors}, {items:,} items: fold-in of {HISTORY} items, "
        f"top {TOP}, with the client in one process on the same machine, each of its connections "
        f"sending one request after the other. Every 16th answer is compared with the library's. "
        f"Memory is the service's resident size before and after. {note}".strip(),
        report.table([*header, "memory, MiB", "seconds"], rows),
    )
    print(page.read_text())


if __name__ == "__main__":
    typer.run(main)
