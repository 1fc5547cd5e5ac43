"""`Tuning`: what `tune` returns."""

from dataclasses import dataclass
from typing import Any

from safecf.evaluation import Evaluation
from safecf.models.recommender import Recommender
from safecf.tuning.objective import Objective
from safecf.tuning.search import Search
from safecf.tuning.trials import Trial, given_options


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tune` has found.

    Parameters
    ----------
    searches
        One per model, the tuned one first, then those of `against`.
    pick
        How the best trial was chosen.
    picked
        The best trial of each search.
    models
        The best model of each search, fitted again on the training data up to its best epoch.
    evaluations
        On the test users: the tuned models of `against`, the first model's defaults, and its best
        model. The others are compared with the first one.
    """

    searches: list[Search]
    pick: str | int
    picked: list[Trial]
    models: list[Recommender]
    evaluations: list[Evaluation]

    @property
    def best(self) -> Trial:
        """The trial that was picked."""
        return self.picked[0]

    @property
    def best_model(self) -> Recommender:
        """The model with the options of the best trial, fitted; its `provenance` says how."""
        return self.models[0]

    @property
    def best_options(self) -> dict[str, Any]:
        """Its options, without those that are the defaults of its class."""
        return given_options(self.best_model)

    @property
    def front(self) -> list[dict[str, Any]]:
        """The trials that are best in mean, in tail, or in between, as `trials` has them."""
        return [_row(each) for each in self.searches[0].front]

    @property
    def trials(self) -> list[dict[str, Any]]:
        """One record per trial of the tuned model: `pandas.DataFrame(tuning.trials)`."""
        return [_row(each) for each in self.searches[0].trials]

    @property
    def objective(self) -> Objective:
        """What was maximised."""
        return self.searches[0].task.objective

    def to_dict(self) -> dict[str, Any]:
        """Return the searches with all trials as JSON values."""
        return {
            "objective": vars(self.objective),
            "pick": self.pick,
            "searches": [
                {
                    "name": each.name,
                    "model": type(each.model).__name__,
                    "seed": each.seed,
                    "ranges": {name: str(one) for name, one in each.space.items()},
                    "best": best.number,
                    "front": [trial.number for trial in each.front],
                    "trials": [trial.to_dict() for trial in each.trials],
                }
                for each, best in zip(self.searches, self.picked, strict=True)
            ],
        }


def _row(trial: Trial) -> dict[str, Any]:
    """Return a trial as a flat record."""
    mean, tail = trial.scores or (float("nan"), float("nan"))
    facts = {"trial": trial.number, "state": trial.state, "mean": mean, "tail": tail}
    return facts | {"epochs": trial.epochs, "seconds": trial.seconds} | trial.options
