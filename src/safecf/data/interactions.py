"""`Interactions`: who interacted with what, by user and by item."""

from dataclasses import dataclass
from typing import Any, Self

from safecf.data.matrix import Csr, check_matrix


@dataclass(frozen=True, eq=False)
class Interactions:
    """The same interactions in both directions: row i of `items` lists the users of item i.

    >>> Interactions.from_csr(scipy.sparse.csr_matrix([[0, 1, 1]])).items.shape
    (3, 1)
    """

    users: Csr
    items: Csr

    @classmethod
    def from_csr(cls, matrix: Any) -> Self:
        """Take a scipy.sparse matrix with users in rows and items in columns."""
        users = check_matrix(matrix)
        return cls(users, users.transpose())

    @property
    def num_users(self) -> int:
        """Number of users, with or without interactions."""
        return self.users.num_rows

    @property
    def num_items(self) -> int:
        """Number of items, with or without interactions."""
        return self.users.num_columns

    @property
    def nnz(self) -> int:
        """Number of interactions."""
        return self.users.nnz
