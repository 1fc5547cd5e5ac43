"""Replace implicit in a pipeline: `python examples/replace_implicit.py`.

The pipeline, `recommend_all`, is written against implicit's interface and does not change. Where
implicit is installed, both libraries run through it, and are compared on held-out users.
"""

import numpy as np

from safecf import IALS, SAFER2, compare, datasets, evaluate
from safecf.evaluation import over_splits

try:
    from implicit.als import AlternatingLeastSquares
except ImportError:
    AlternatingLeastSquares = None


def recommend_all(model, user_items):
    """Train, and return the ten best new items of every user, as a pipeline of yours may do."""
    model.fit(user_items, show_progress=False)
    ids, scores = model.recommend(np.arange(user_items.shape[0]), user_items, N=10)
    return ids, scores


def make_models():
    """Return untrained models: `fit` of implicit goes on from the factors of the last one."""
    # Before: model = AlternatingLeastSquares(factors=64)
    models = {
        "IALS": IALS(factors=64, random_state=0),
        "SAFER2": SAFER2(factors=64, random_state=0),
    }
    if AlternatingLeastSquares is not None:
        models = {"implicit": AlternatingLeastSquares(factors=64, random_state=0)} | models
    return models


user_items = datasets.synthetic(3000, 600, 120_000, tastes=30).matrix
for name, model in make_models().items():
    ids, scores = recommend_all(model, user_items)
    similar, _ = model.similar_items(ids[0, 0], N=3)
    print(f"{name}: user 0 gets {ids[0, :3]}; like item {ids[0, 0]} are {similar}")

# Does it change anything for users? `evaluate` takes implicit's models as well. One split has too
# few users to tell. All have their defaults: tune them before you conclude.
found = {name: [] for name in make_models()}
log = datasets.Log.of_matrix(user_items)
for split in log.repeated_strong_generalization(heldout=300, repeats=10):
    for name, model in make_models().items():
        model.fit(split.train, show_progress=False)
        found[name].append(evaluate(model, split, name=name, k=(20,), metrics=("recall",)))
results = [over_splits(evaluations) for evaluations in found.values()]
comparison = compare(results)
for result in results:
    print(
        f"{result.model}: {result.mean('recall@20'):.3f}, tail {result.tail('recall@20', 0.3):.3f}"
    )
for other in results[1:]:
    print(comparison.verdict(other.model))
