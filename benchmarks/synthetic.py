"""How long synthetic data takes, and how much memory."""

from benchmarks.clock import apart, cost
from benchmarks.harness import Found, Row, Size
from safecf.data.datasets.synthetic import SHAPES, synthetic


def measure(size: Size) -> Found:
    """Draw every named shape, each in a process of its own."""
    for name, shape in SHAPES.items():
        users, items, interactions = size.shape(shape.users, shape.items, shape.interactions)
        row = {"shape": name, "users": users, "items": items, "interactions": interactions}
        found = apart(draw, name, users, items, interactions)
        yield "shapes", {**row, **found, "matrix": 8 * (users + 1) + 8 * interactions}


def draw(name: str, users: int, items: int, interactions: int) -> Row:
    """Return what it takes to draw a named shape, or one of the same kind that is smaller."""
    synthetic(200, 100, 2000)  # loads code
    if users == SHAPES[name].users:
        return cost(lambda: synthetic(name, seed=0))
    return cost(lambda: synthetic(users, items, interactions, seed=0))
