"""How long synthetic data takes, and how much memory."""

from benchmarks.clock import Cost, apart, cost
from benchmarks.harness import Part, Size, Tables, benchmark, progress
from safecf.data.datasets.synthetic import SHAPES, synthetic

EXPERIMENT = benchmark("synthetic", "Synthetic data", Part("", "synthetic:measure"))


def measure(size: Size) -> Tables:
    """Draw every named shape, each in a process of its own."""
    rows = []
    for name, shape in SHAPES.items():
        users, items, interactions = size.shape(shape.users, shape.items, shape.interactions)
        found = Cost(*apart("synthetic", "draw", name, users, items, interactions))._asdict()
        row = {"shape": name, "users": users, "items": items, "interactions": interactions}
        rows.append({**row, **found, "matrix": 8 * (users + 1) + 8 * interactions})
        progress(str(rows[-1]))
    return {"setting": [{}], "shapes": rows}


def draw(name: str, users: int, items: int, interactions: int) -> Cost:
    """Return what it takes to draw a named shape, or one of the same kind that is smaller."""
    synthetic(200, 100, 2000)  # loads code
    if users == SHAPES[name].users:
        return cost(lambda: synthetic(name, seed=0))
    return cost(lambda: synthetic(users, items, interactions, seed=0))
