"""The state of a training: what goes into a checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from safecf.als.capabilities import Factors
from safecf.als.loss import Vector
from safecf.als.optimizers import Moments


@dataclass
class State:
    """What an epoch starts from; enough to go on with the same bits.

    Factors and moments are where the backend keeps them. `spectrum` holds the eigenvalues of
    b Y'Y if both sides are in its eigenbasis.
    """

    users: Factors
    items: Factors
    weights: Vector
    xi: float | None = None
    epoch: int = 0
    moments: tuple[Moments | None, Moments | None] = (None, None)
    spectrum: Vector | None = None

    def map(self, move: Callable[[Factors], Factors]) -> "State":
        """Return the state with `move` applied to all factors and moments."""
        users, items = self.moments
        return replace(
            self,
            users=move(self.users),
            items=move(self.items),
            moments=(users and users.map(move), items and items.map(move)),
        )

    def restore(self, kept: "State") -> None:
        """Go back to what a sweep's `backup` has kept."""
        vars(self).update(vars(kept))
