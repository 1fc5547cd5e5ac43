"""`bandwidth`: how SAFER2 converges by the bandwidth h."""

from safecf.experiments.base import Experiment
from safecf.experiments.profiles import Profile

BANDWIDTHS = (0.01, 0.05, 0.18, 1e16)

PROFILE = Profile(
    {f"h = {h:g}".replace("+", ""): {"bandwidth": h} for h in BANDWIDTHS},
    "SAFER2 with the authors' settings, but for the bandwidth h. The paper says that h = 0.01 and "
    "0.05 impede convergence, h = 0.01 with fluctuating norms and quality; that h = 0.18 and 1e16 "
    "converge stably, while 1e16, which is ERM, so that z stays the same, is not the best for the "
    "tail.",
    watched="cvar",
)

EXPERIMENT = Experiment(
    "bandwidth",
    "Convergence of SAFER2 by bandwidth",
    'figure "convergence profile of SAFER2 with different bandwidth h"',
    PROFILE.cells,
    PROFILE.render,
    data=("ml-1m", "ml-20m"),
    seeds=5,
)
