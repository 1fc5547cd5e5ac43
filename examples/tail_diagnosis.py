"""Who are the worst-off users of a recommender, and why? `python examples/tail_diagnosis.py`.

It diagnoses any model that recommends; here an iALS, on users of many tastes.
"""

from safecf import IALS, datasets, evaluate, report
from safecf.evaluation import tail_profile

METRIC, LEVEL = "recall@20", 0.3

people = datasets.synthetic(2500, 600, 75_000, tastes=12)
labels = [f"taste {group:02}" for group in people.group]
split = datasets.Log.of_matrix(people.matrix, labels).strong_generalization(heldout=500)
model = IALS(random_state=0).fit(split.training, show_progress=False)
result = evaluate(model, split)

mean, tail = result.mean(METRIC), result.tail(METRIC, LEVEL)
low, high = result.interval(METRIC, LEVEL)
print(f"{METRIC}: {mean:.3f} for all users")
print(f"{METRIC}: {tail:.3f} [{low:.3f}, {high:.3f}] for the worst-off {LEVEL:.0%}")
print(f"the user on the boundary has {result.value_at_risk(METRIC, LEVEL):.3f}")

# What is different about them: medians of the tail, and of all others.
profile = tail_profile(result, METRIC, LEVEL)
for name, (tail, others) in profile.properties.items():
    print(f"{name:15} {tail.median:8.2f} in the tail, {others.median:8.2f} otherwise")

# Which groups they are from.
risks = {label: risk for label, (_, _, risk) in profile.groups.items()}
for label in sorted(risks, key=risks.get, reverse=True)[:3]:
    print(f"{label}: {risks[label]:.0%} of them are in the tail")
worst = result.worst_group(METRIC)
if worst is not None:
    print(f"the worst group with at least 30 users: {worst.label}, {worst.mean:.3f}")

report(result, "diagnosis.html", level=LEVEL)  # all of it, with charts
