"""Run the tests against the mutants of `tests.mutants.source`, in one process that forks.

    python -m tests.mutants.run FOLDER cover [PYTEST_ARGUMENT ...]
    python -m tests.mutants.run FOLDER kill [--part 0/2] [PYTEST_ARGUMENT ...]
    python -m tests.mutants.run FOLDER table [OTHER_FOLDER]

`cover` runs all tests once, and notes which mutants each one reaches, and its CPU seconds. `kill`
collects once and forks for every mutant: the child runs the tests that reach it, one case of each
function before the second of any, until one fails or the CPU seconds of `--most` are spent. A run
that has to be ended counts as killed only if one test was stuck. `table` counts by package.
`python` has to import safecf from FOLDER; see `make mutate`.
"""

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from functools import _lru_cache_wrapper
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

MOST = 5.0  # CPU seconds of tests for one mutant
STUCK = 10.0  # seconds in one test of a run that had to be ended: it is stuck there
CAUSES = ("fails", "time", "survives", "not reached")


def lines(path: Path) -> list:
    """Return the records of a file of JSON lines; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Cover:
    """Which mutants each test reaches: by itself, by fixtures that it shares, by its processes."""

    def __init__(self, folder: Path, mutants) -> None:
        self.mutants, self.shared, self.costs = mutants, defaultdict(set), Counter()
        self.file = (folder / f"cover-{os.getpid()}.jsonl").open("w")
        self.processes = Path(tempfile.mkdtemp())
        os.environ["SAFECF_REACHED"] = str(self.processes)
        mutants.reached, self.failed, self.caches = set(), False, None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Note what a fixture that several tests share reaches."""
        if fixturedef.scope == "function":
            return (yield)
        before, self.mutants.reached, begin = self.mutants.reached, set(), cpu()
        try:
            return (yield)
        finally:
            self.shared[fixturedef] |= self.mutants.reached
            self.costs[fixturedef] = cpu() - begin
            self.mutants.reached |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Run one test with cold caches, so that it reaches what it depends on."""
        if self.caches is None:
            found = (each for each in gc.get_objects() if type(each) is _lru_cache_wrapper)
            self.caches = [each for each in found if str(each.__module__).startswith("tests")]
        for cache in self.caches:
            cache.cache_clear()
        self.mutants.reached, self.failed, begin = set(), False, cpu()
        result = yield
        seconds = cpu() - begin
        found = self.mutants.reached
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            found = found.union(*(self.shared[each] for each in fixtures))
            seconds = max(seconds, sum(self.costs[each] for each in fixtures))
        for process in self.processes.iterdir():
            found |= set(map(int, process.read_text().split()))
            process.unlink()
        if not self.failed:
            self.file.write(json.dumps([item.nodeid, round(seconds, 4), sorted(found)]) + "\n")
            self.file.flush()
        return result

    def pytest_runtest_logreport(self, report):
        """A test that fails or skips without any mutant tells nothing."""
        self.failed |= report.outcome != "passed"


class Kill:
    """One child for each mutant, which ends at its first failure."""

    def __init__(self, folder: Path, mutants, part: str, most: float) -> None:
        self.mutants, self.most = mutants, most
        self.part, self.parts = map(int, part.split("/"))
        self.out = folder / f"killed-{self.part}.jsonl"
        self.at = folder / f"at-{self.part}"
        self.all = lines(folder / "mutants.jsonl")
        self.cover = [each for path in folder.glob("cover-*.jsonl") for each in lines(path)]

    def pytest_runtestloop(self, session):
        """Go through the mutants of this part that have no result yet."""
        items = {item.nodeid: item for item in session.items}
        reaching = defaultdict(list)
        for nodeid, seconds, reached in self.cover:
            for number in reached if nodeid in items else ():
                reaching[number].append((seconds, nodeid))
        done = {each[0] for path in self.out.parent.glob("killed-*.jsonl") for each in lines(path)}
        gc.freeze()
        for number, package, *_ in self.all[self.part :: self.parts]:
            if number in done:
                continue
            chosen = in_turn(reaching[number], self.most, package)
            found = ["not reached", ""]
            if chosen:
                found = self.outcome(number, [items[name] for _, name in chosen], chosen)
            with self.out.open("a") as file:
                file.write(json.dumps([number, package, *found]) + "\n")
        return True

    def outcome(self, number: int, items: list, chosen: list) -> list[str]:
        """Return how the mutant ends, and the test that ended it."""
        allowed = 5 + 3 * sum(seconds for seconds, _ in chosen)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            self.attempt(number, items, allowed)
        until = time.monotonic() + 60 + 5 * allowed
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(0.005)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and what it started
        if not ended[0]:
            os.waitpid(child, 0)
            ended = (child, signal.SIGKILL)
        where, since = self.at.read_text().rsplit(" ", 1)
        if os.WIFEXITED(ended[1]):
            return ["fails", where] if os.WEXITSTATUS(ended[1]) else ["survives", ""]
        stuck = time.monotonic() - float(since) > STUCK
        return ["time" if stuck else "survives", where]

    def attempt(self, number: int, items: list, allowed: float) -> None:
        """Run the tests with the mutant on; in a child, which does not return."""
        resource.setrlimit(resource.RLIMIT_CPU, (int(allowed) + 1, int(allowed) + 2))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        self.mutants.active = number
        os.environ["SAFECF_MUTANT"] = str(number)
        code = 0
        try:
            for item, after in zip(items, [*items[1:], None], strict=True):
                self.at.write_text(f"{item.nodeid} {time.monotonic()}")
                reports = runtestprotocol(item, nextitem=after, log=False)
                if any(report.failed for report in reports):
                    code = 1
                    break
        except BaseException:
            code = 1
        os._exit(code)


def in_turn(tests: list, most: float, package: str) -> list:
    """Return one case of every function before the second of any; the package's own tests first."""
    seen, order, own = Counter(), [], f"tests/{package.removesuffix('.py')}"
    for seconds, nodeid in sorted(tests):
        function = nodeid.split("[")[0]
        others = not nodeid.replace("/test_", "/").startswith(own)
        order.append((seen[function], others, seconds, nodeid))
        seen[function] += 1
    spent, chosen = 0.0, []
    for *_, seconds, nodeid in sorted(order):
        if not chosen or spent + seconds <= most:
            spent += seconds
            chosen.append((seconds, nodeid))
    return chosen


def cpu() -> float:
    """Return the CPU seconds of this process and of the children that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def table(*folders: Path) -> None:
    """Print the mutants of each package, and the share that every folder's run has killed."""
    rates = []
    for folder in folders:
        found = [each for path in folder.glob("killed-*.jsonl") for each in lines(path)]
        rates.append(Counter((package, cause) for _, package, cause, _ in found))
    packages = sorted({package for rate in rates for package, _ in rate})
    for package in packages:
        shown = [package]
        for rate in rates:
            every = sum(rate[package, cause] for cause in CAUSES)
            killed = rate[package, "fails"] + rate[package, "time"]
            shown.append(f"{killed} of {every}, {killed / max(every, 1):.1%}")
        print("| " + " | ".join(shown) + " |")


def main(folder: str, task: str, *arguments: str) -> int:
    """Run one of the three tasks."""
    given = list(arguments)

    def option(name: str, default: str) -> str:
        if name not in given:
            return default
        at = given.index(name)
        return given.pop(at) and given.pop(at)

    if task == "table":
        table(Path(folder), *map(Path, given))
        return 0
    from safecf import _mutants  # noqa: PLC0415  # only a copy with mutants has it

    part, most = option("--part", "0/1"), float(option("--most", str(MOST)))
    where = Path(folder).resolve()
    plugin = Cover(where, _mutants) if task == "cover" else Kill(where, _mutants, part, most)
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    return pytest.main([*quiet, *given], plugins=[plugin])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
