"""How fast and how steady the service is under load; client and service share the machine."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.clock import status
from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import long_tailed
from safecf.models import SAFER2

HOST = "127.0.0.1"
# fold-in of 100 items, d = 256, 20,000 items, top 20
ITEMS, FACTORS, HISTORY, TOP = 20_000, 256, 100, 20
CHECKED = 16  # one answer in so many is compared
Request = tuple[bytes, list[int]]  # as it is sent, and the right answer


def measure(size: Size, loads: list[tuple[int, float]]) -> Found:
    """Load the service; a load is the number of clients, and seconds."""
    items, d = size.shape(1, ITEMS, 1)[1], size.factors(FACTORS)
    history = min(HISTORY, items // 2)
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "model.safetensors", SAFER2(d, iterations=1, random_state=0)
        model.fit(long_tailed(2000, items, min(200_000, 500 * items)), show_progress=False)
        model.save(path)
        asked = requests_of(model, items, history)
        del model
        process, port = start(path)
        try:
            for clients, seconds in loads:
                span = max(0.5, seconds * size.scale)
                yield "loads", asyncio.run(load(port, process.pid, asked, clients, span))
        finally:
            process.terminate()
            code = process.wait(60)
    if code:
        raise RuntimeError(f"the service ended with {code}")
    setting = {"items": items, "factors": d, "history": history, "top": TOP, "checked": CHECKED}
    yield "setting", setting


def requests_of(model: Any, items: int, length: int, count: int = 64) -> list[Request]:
    """Return requests as they are sent, and the right answers."""
    rng, found = np.random.default_rng(0), []
    for _ in range(count):
        history = np.sort(rng.choice(items, length, replace=False))
        parts = np.ones(length, np.float32), history, [0, length]
        row = scipy.sparse.csr_matrix(parts, shape=(1, items))
        ids, _ = model.recommend(0, row, N=TOP, recalculate_user=True)
        body = json.dumps({"history": history.tolist(), "k": TOP}).encode()
        head = f"POST /recommend HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        found.append((head.encode() + body, ids.tolist()))
    return found


async def client(
    port: int, requests: list[Request], until: float, seed: int
) -> tuple[list[float], int]:
    """Send one request after the other on one connection; return latencies in ms, and errors."""
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
        elif number % CHECKED == 0:
            errors += [each["id"] for each in json.loads(body)["items"]] != right
        number += 1
    writer.close()
    return latency, errors


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(port: int, pid: int, requests: list[Request], clients: int, seconds: float) -> Row:
    """Load the service with clients for some seconds, after a tenth of them as a warm-up."""

    async def sent(span: float) -> tuple[np.ndarray, int]:
        until = time.perf_counter() + span
        each = [client(port, requests, until, 7 * number) for number in range(clients)]
        found = await asyncio.gather(*each)
        return np.array([one for times, _ in found for one in times]), sum(e for _, e in found)

    await sent(max(min(1.0, seconds), seconds / 10))
    before, begin = status("VmRSS", pid), time.perf_counter()
    spent = cpu_seconds(pid), time.process_time()
    latency, errors = await sent(seconds)
    taken, count = time.perf_counter() - begin, int(latency.size)
    p50, p99 = np.percentile(latency, [50, 99]).tolist()
    row: Row = {"clients": clients, "answers": count, "per_second": count / taken, "p50": p50}
    row |= {"p99": p99, "max": float(latency.max()), "errors": errors, "seconds": seconds}
    row["service"] = 1000 * (cpu_seconds(pid) - spent[0]) / count
    row["client"] = 1000 * (time.process_time() - spent[1]) / count
    return row | {"before": before, "after": status("VmRSS", pid)}


def start(path: Path) -> tuple[subprocess.Popen[str], int]:
    """Start the service in a process of its own; return its port."""
    command = [sys.executable, "-m", "safecf", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "http://" in line:
            return process, int(line.split(f"{HOST}:")[1].split()[0])
    raise RuntimeError("the service did not start")
