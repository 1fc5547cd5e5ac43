"""The cell of a peer: implicit's ALS with its own defaults, scored as our models are."""

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.tasks.quality import users_of
from reproduction.worker import threads
from safecf.evaluation import evaluate


def peer(settings: Settings) -> Record:
    """Return the scores of every test user by `AlternatingLeastSquares()` of implicit.

    The settings are those of `quality`, without a model.
    """
    from implicit.als import AlternatingLeastSquares  # noqa: PLC0415 - it is optional

    split = load_split(settings["data"], settings["split"])
    model = AlternatingLeastSquares(random_state=settings["seed"], num_threads=threads())
    model.fit(split.train, show_progress=False)
    found = evaluate(model, split, k=(20,), metrics=settings["metrics"], on=settings["on"])
    return {**found.scores, "users": users_of(split, settings["on"])}
