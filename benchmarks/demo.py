"""How typical the demo is: what it shows on data of other seeds, and beside a tuned iALS."""

import statistics

from benchmarks.harness import Found, Row, Size
from safecf.cli.demo import SPLIT, make_models, make_split
from safecf.cli.results import Output, train_and_evaluate
from safecf.defaults import CUTOFFS, LEVEL, METRIC
from safecf.evaluation import Difference, compare
from safecf.evaluation.difference import UNCLEAR
from safecf.models import IALS

LEVELS = {"tail": LEVEL, "all": 1.0}


def measure(size: Size, seeds: int, pairs: dict[str, list[str]], tuning: str, tuned: Row) -> Found:
    """Run the demo on data of several seeds; compare pairs of models, one of them tuned."""
    output = Output(METRIC, CUTOFFS, LEVEL, quiet=True)
    found: dict[str, list[Difference]] = {}
    seeds = size.count(seeds, 2)
    for seed in range(seeds):
        models = {**make_models(0), "tuned iALS": IALS(**tuned, random_state=0)}
        evaluations = train_and_evaluate(models, make_split(seed), output)
        row: Row = {"seed": seed}
        for level, share in LEVELS.items():
            row[f"ials_{level}"] = evaluations[0].tail(METRIC, share)
            for name, (baseline, model) in pairs.items():
                lift = compare(evaluations, baseline).difference(model, METRIC, share)
                found.setdefault(f"{name}_{level}", []).append(lift)
                value, low, high = lift.relative
                row[f"{name}_{level}"] = {"value": value, "low": low, "high": high}
        yield "seeds", row
    lifts = {name: [each.relative[0] for each in column] for name, column in found.items()}
    tail = lifts["safer2_tail"]
    shown = tail.index(statistics.median_low(tail))
    setting: Row = {"seeds": seeds, "shown": shown, "level": LEVEL}
    setting |= {"metric": METRIC, "heldout": SPLIT.heldout, "tuning": tuning}
    setting["options"] = ", ".join(f"{name}={value:g}" for name, value in tuned.items())
    for name in ("safer2", "tuned"):
        column = lifts[f"{name}_tail"]
        clear = sum(each.outcome != UNCLEAR for each in found[f"{name}_tail"])
        setting[name] = {"low": min(column), "high": max(column), "clear": clear}
    yield "setting", setting
    medians = {name: {"value": statistics.median(column)} for name, column in lifts.items()}
    yield "seeds", {"seed": "median", **medians}
