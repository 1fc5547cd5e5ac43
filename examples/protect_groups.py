"""Protect small groups: `python examples/protect_groups.py`.

Users speak ten languages, some of them rare. `user_groups` makes the tail one of groups: each
counts the same, however small, and the worst-off share `tail` of them is protected.
"""

import numpy as np

from safecf import SAFER2, datasets, evaluate

METRIC = "recall@20"
LANGUAGES = [
    *("English", "Spanish", "German", "French", "Italian"),
    *("Polish", "Dutch", "Czech", "Danish", "Greek"),
]

people = datasets.synthetic(4000, 800, 120_000, tastes=30)
language = np.array(LANGUAGES)[people.group // 3]
split = datasets.Log.of_matrix(people.matrix, language).strong_generalization(heldout=1000)
spoken = language[split.training.user_ids]  # by the users who are trained on

users = SAFER2(64, random_state=0).fit(split.training, show_progress=False)
groups = SAFER2(64, random_state=0)
groups.fit(split.training, show_progress=False, user_groups=spoken)

for name, model in (("the worst-off users", users), ("the worst-off languages", groups)):
    result = evaluate(model, split, k=(20,), metrics=("recall",))
    worst = result.worst_group(METRIC)
    print(
        f"protecting {name}: all {result.mean(METRIC):.3f}, worst-off 30 % of the users "
        f"{result.tail(METRIC, 0.3):.3f}, {worst.label} {worst.mean:.3f}"
    )
