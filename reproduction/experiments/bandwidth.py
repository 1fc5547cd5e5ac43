"""`bandwidth`: convergence of SAFER2 by the bandwidth h."""

from reproduction.base import Experiment, cells_of
from reproduction.profiles import Claim, Profile

TAIL = "recall of the tail"
BANDWIDTHS = (0.01, 0.05, 0.18, 1e16)

PROFILE = Profile(
    {f"h = {h:g}".replace("+", ""): {"bandwidth": h} for h in BANDWIDTHS},
    "SAFER2 with the authors' settings, but for the bandwidth h; h = 1e16 makes it ERM, so that z "
    "stays the same.",
    (
        Claim("h = 0.01 and 0.05 impede convergence", "norm of ΔU", "h = 0.01", "h = 0.18"),
        Claim("h = 0.01 and 0.05 impede convergence", "norm of ΔU", "h = 0.05", "h = 0.18"),
        Claim("quality fluctuates with h = 0.01", "swing of the recall", "h = 0.01", "h = 0.18"),
        Claim("h = 1e16 is not the best for the tail", TAIL, "h = 0.18", "h = 1e16"),
    ),
    watched="cvar",
)

EXPERIMENT = Experiment(
    "bandwidth",
    "Convergence of SAFER2 by bandwidth",
    'figure "convergence profile of SAFER2 with different bandwidth h"',
    cells_of(PROFILE.plan),
    PROFILE.render,
    data=("ml-1m", "ml-20m"),
    seeds=5,
)
