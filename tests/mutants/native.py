"""Mutants of the native core: one build holds all of them, and SAFECF_MUTANT chooses one.

python tests/mutants/native.py build/mutants --limit 300 tests/agreement tests/backends

draws them with a fixed seed, runs the C++ tests and then these Python tests for each, and writes
mutants.jsonl: what was changed, and what killed it. A run goes on where an earlier one of the same
sources stopped; remove the folder after a change of the tests.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SWITCH = """#pragma once
#include <stdlib.h>
static const int mutant_chosen = getenv("SAFECF_MUTANT") ? atoi(getenv("SAFECF_MUTANT")) : -1;
#define MUTANT(number) __builtin_expect(mutant_chosen == number, 0)
"""
COMMENT = re.compile(r"(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+')|//[^\n]*")
# Of these nothing is changed; `return` and `=` separate expressions as a semicolon does.
HIDDEN = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|^ *template <.*"
    r"|\boperator[^\s(]+|\b(?:static_assert|SAFECF_ASSERT|__builtin_prefetch)\([^;]*;",
    re.MULTILINE,
)
ENDS = re.compile(r"\breturn\b|(?<= )[-+*/|&]?=(?= )|::")
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "*": "+", "/": "*"}
SWAPS |= {"&&": "||", "||": "&&", "==": "!=", "!=": "=="}
OPERATOR = re.compile(r"(?<= )(&&|\|\||[<>=!]=|[-<>+*/])(?= )")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?f?(?![\w.])")
CONSTANT = re.compile(r"\bconstexpr (\w+ k\w+) = ([^{;]+)(?=;)")
STATEMENT = re.compile(
    r"(?<=[;{})])\s+((?!(?:if|for|while|switch|return|using|case)\b)(?:\+\+)?"
    r"(?:[\w.]|->|\[\w+\])+(?:\(| [-+*/|&]?= |(?=;))[^;{}]*;)"
)


def extent(shape, at):
    """The expression around a position: as far as its brackets, or what separates it, go."""
    ends, depth, low, high = ";,?:{", 0, at, at
    while depth > 0 or shape[low - 1] not in ends + "([}":
        low -= 1
        depth += (shape[low] in ")]") - (shape[low] in "([")
    while depth < 0 or shape[high] not in ends + ")]}":
        depth += (shape[high] in ")]") - (shape[high] in "([")
        high += 1
    return low + len(shape[low:high]) - len(shape[low:high].lstrip()), high


def changes(text):
    """Yield (start, end, what stands there with a MUTANT as a choice, the change in words)."""
    shape = HIDDEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    shown = ENDS.sub(lambda m: "__" if m[0] == "::" else ";".rjust(len(m[0])), shape)
    for m in OPERATOR.finditer(shown):
        low, high = extent(shown, m.start())
        old, new = text[low:high], text[low : m.start()] + SWAPS[m[0]] + text[m.end() : high]
        yield low, high, f"(MUTANT(@) ? {' '.join(new.split())} : {old})", f"{m[0]} {SWAPS[m[0]]}"
    for m in NUMBER.finditer(shape):
        yield *m.span(), f"(MUTANT(@) ? {m[0]} + 1 : {m[0]})", f"{m[0]} {m[0]} + 1"
    for m in CONSTANT.finditer(shape):
        one = f"const {m[1]} = MUTANT(@) ? 2 * ({m[2]}) : {m[2]}"
        yield *m.span(), one, f"{m[1]} twice"
    for m in STATEMENT.finditer(shape):
        yield *m.span(1), f"{{ if (!MUTANT(@)) {text[slice(*m.span(1))]} }}", "dropped"


def draw(sources, seed):
    """All mutants in random order, without those whose text overlaps that of an earlier one."""
    found = [(name, *each) for name, text in sources.items() for each in changes(text)]
    random.Random(seed).shuffle(found)
    taken, drawn = {name: bytearray(len(text)) for name, text in sources.items()}, []
    for name, low, high, new, change in found:
        if not any(taken[name][low:high]):
            taken[name][low:high] = b"x" * (high - low)
            line = sources[name].count("\n", 0, low) + 1
            last = sources[name].count("\n", 0, high) + 1
            place = {"file": name, "line": line, "change": change, "was": sources[name][low:high]}
            drawn.append({**place, "span": (low, high), "last": last, "new": new})
    return drawn


def write(folder, sources, mutants):
    """Write the sources with these mutants, each file only where it differs."""
    for name, source in sources.items():
        text, here = source, [each for each in mutants if each["file"] == name]
        for each in sorted(here, key=lambda m: -m["span"][0]):
            low, high = each["span"]
            text = text[:low] + each["new"].replace("@", str(each["mutant"])) + text[high:]
        path = folder / "cpp" / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def build(folder, source, *options):
    """Build and return the compiler's messages as (file, line), or nothing if it succeeds."""
    target = folder / "build" / (source or "python")
    where = ["-S", folder / source, "-B", target, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    forced = f"-DCMAKE_CXX_FLAGS=-include {folder / 'mutant.hpp'} -fmax-errors=0"
    subprocess.run(["cmake", *where, forced, *options], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(
        ["cmake", "--build", target, "--", "-k", "0"], check=False, capture_output=True, text=True
    )
    if done.returncode == 0:
        return []
    (folder / "build.log").write_text(done.stdout)
    places = rf"^{folder}/(?:\S*/\.\./)?cpp/(\S+?):(\d+):\d+: (?:error|note):"
    found = re.findall(places, done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found


def compile_all(folder, sources, drawn, count):
    """Build with the first `count` mutants that compile, and return them."""
    kept = folder / "failing.json"
    failing = set(json.loads(kept.read_text()) if kept.exists() else [])
    while True:
        mutants = [each for i, each in enumerate(drawn) if i not in failing][:count]
        for number, each in enumerate(mutants):
            each["mutant"] = number
        write(folder, sources, mutants)
        bad = build(folder, "", f"-DPython_EXECUTABLE={sys.executable}")
        bad = bad or build(folder, "tests/cpp")
        if not bad:
            return mutants
        before = set(failing)
        for slack in (0, 1, 4):  # the message may name a line near the mutant's
            for i, each in enumerate(drawn):
                lines = range(each["line"] - slack, each["last"] + slack + 1)
                if any(name == each["file"] and int(line) in lines for name, line in bad):
                    failing.add(i)
            if failing != before:
                break
        print(f"{len(failing)} do not compile", flush=True)
        kept.write_text(json.dumps(sorted(failing)))
        assert failing != before, bad


def killer(folder, number, tests, limit):
    """What fails with this mutant, the C++ tests first; nothing if it survives."""
    environment = {**os.environ, "SAFECF_MUTANT": str(number)}
    for test in sorted((folder / "build" / "tests/cpp").glob("test_*")):
        command = ["timeout", "60", test]
        done = subprocess.run(command, check=False, capture_output=True, env=environment)
        if done.returncode:
            return f"{test.name} ({'timeout' if done.returncode == 124 else done.returncode})"
    environment |= {"SAFECF_CORE": str(folder / "build/python")}
    environment |= {"PYTHONPATH": f"tests/sanitized{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "pytest", "-xq", "--tb=no", "-p", "no:cacheprovider", *tests]
    command = ["timeout", str(limit), *command]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else f"({done.returncode})" if done.returncode else None


def main():
    """Draw, build and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--limit", type=int, default=600, help="seconds of the Python tests")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    args, tests = parser.parse_known_args()
    folder = args.folder.resolve()
    shutil.copytree("tests/cpp", folder / "tests/cpp", dirs_exist_ok=True)
    shutil.copytree("cpp", folder / "cpp", ignore=shutil.ignore_patterns("*pp"), dirs_exist_ok=True)
    shutil.copy("CMakeLists.txt", folder)
    (folder / "mutant.hpp").write_text(SWITCH)
    sources = {
        str(path.relative_to("cpp")): COMMENT.sub(lambda m: m[1] or "", path.read_text())
        for path in sorted(Path("cpp").rglob("*.?pp"))
    }
    # amx.cpp runs on few machines: its mutants would survive everywhere else
    drawn = [m for m in draw(sources, args.seed) if m["file"] != "kernels/amx.cpp"]
    path = folder / "mutants.jsonl"
    asked = json.dumps([args.count, args.seed, sources])
    if not (folder / "asked").exists() or (folder / "asked").read_text() != asked:
        for stale in (path, folder / "failing.json"):
            stale.unlink(missing_ok=True)
        (folder / "asked").write_text(asked)
    mutants = compile_all(folder, sources, drawn, args.count)
    known = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(line)["mutant"] for line in known}
    assert done or killer(folder, -1, tests, args.limit) is None, "the tests fail without a mutant"

    def examine(each):
        row = {k: each[k] for k in ("mutant", "file", "line", "change", "was")}
        row["killed"] = killer(folder, each["mutant"], tests, args.limit)
        with path.open("a") as file:
            print(json.dumps(row), file=file)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(examine, [each for each in mutants if each["mutant"] not in done]))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print(f"{sum(row['killed'] is not None for row in rows)} of {len(rows)} killed")


if __name__ == "__main__":
    main()
