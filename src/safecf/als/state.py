"""The state of a training: what goes into a checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from safecf.als.capabilities import Factors, PerRow
from safecf.als.optimizers import Moments


@dataclass
class State:
    """What an epoch starts from; enough to go on with the same bits.

    Factors and moments are where the backend keeps them. `spectrum` holds the eigenvalues of
    b Y'Y if both sides are in its eigenbasis.
    """

    users: Factors
    items: Factors
    weights: PerRow
    xi: float | None = None
    epoch: int = 0
    moments: tuple[Moments | None, Moments | None] = (None, None)
    spectrum: PerRow | None = None

    def map(
        self, move: Callable[[Factors], Factors], move_vector: Callable[[PerRow], PerRow]
    ) -> "State":
        """Return the state with all factors and moments moved, and all vectors."""
        users, items = self.moments
        return replace(
            self,
            users=move(self.users),
            items=move(self.items),
            weights=move_vector(self.weights),
            moments=(users and users.map(move), items and items.map(move)),
            spectrum=None if self.spectrum is None else move_vector(self.spectrum),
        )

    def restore(self, kept: "State") -> None:
        """Go back to what a sweep's `backup` has kept."""
        vars(self).update(vars(kept))
