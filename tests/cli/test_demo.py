"""`safecf demo`: its files, how typical it is, and what the defaults do for the worst-off."""

import json
from pathlib import Path

from safecf import Comparison


def test_the_demo_shows_its_verdict(run):
    code, out, _ = run("demo", "--out", "demo")
    assert code == 0
    shown = " ".join(out.split())
    found = Comparison.from_dict(json.loads(Path("demo/results.json").read_text()))
    assert [each.model for each in found.others] == ["ERM-MF", "SAFER2"]
    for each in (found.baseline, *found.others):
        kept = each.training["params"]
        assert (kept["factors"], kept["regularization"], kept["random_state"]) == (256, "auto", 0)
    page = Path("demo/report.html").read_text()
    assert found.verdict("SAFER2") in shown
    assert found.verdict("SAFER2") in page
    said = shown[shown.index("data seeds, ") :].split(".")[0]  # how typical the seed is
    assert said in page
    # SAFER2 serves new users better than both, above all the worst-off
    ours = found.others[1]
    for other in (found.baseline, found.others[0]):
        mean, tail = (ours.tail("recall@20", t) / other.tail("recall@20", t) for t in (1.0, 0.3))
        assert tail > mean > 1
