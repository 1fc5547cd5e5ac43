"""`python -m soak.parsers NAME -runs=1000000`: fuzz a parser of bytes, guided by coverage.

Options after the name are libFuzzer's. It needs Atheris, and safecf installed as users do, which
`make fuzz` sees to: an editable installation hides the code from it. It ends with status 0 after so
many executions without a defect; else it writes the bytes that show one, and `python -m
soak.parsers NAME FILE` repeats it. Without Atheris, `python -m soak damaged-bytes` tries the same
parsers with random damage.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from soak.attack import attack
from soak.mutations import Generator, damage, dumped, hostile_json, pick


@attack("A parser of bytes returns, or raises an error of ours.", cases=110_000)
def damaged_bytes(rng: Generator) -> str:
    """Give a parser a damaged sample."""
    from soak.guard import Refused  # noqa: PLC0415
    from soak.targets import TARGETS  # noqa: PLC0415 - after Atheris, below

    name = pick(rng, TARGETS)
    content = damage(rng, TARGETS[name].seeds())
    try:
        TARGETS[name](content)
    except Refused:
        return f"{name}: refused"
    return f"{name}: read"


def main(arguments: list[str]) -> None:
    """Fuzz the target of the first argument."""
    import atheris  # noqa: PLC0415 - optional

    with atheris.instrument_imports(include=["safecf"]):
        from soak.guard import Refused  # noqa: PLC0415
        from soak.targets import TARGETS  # noqa: PLC0415
    name, *options = arguments
    target = TARGETS[name]

    def once(content: bytes) -> None:
        try:
            target(content)
        except Refused:
            return

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        """Change the bytes, or where they are JSON, every other time its values."""
        if target.is_json and seed % 2:
            try:
                changed = hostile_json(np.random.default_rng(seed), json.loads(content))
                return dumped(changed)[:most]
            except (ValueError, RecursionError):
                pass
        return bytes(atheris.Mutate(content, most))

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds()):
            Path(corpus, f"seed-{number}").write_bytes(seed)
        given = [] if any(Path(each).is_file() for each in options) else [corpus]
        limits = ["-max_len=8192", "-timeout=20", "-rss_limit_mb=3000", f"-artifact_prefix={name}-"]
        atheris.Setup([sys.argv[0], *limits, *options, *given], once, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
