"""`sampling`: how SAFER2 converges by the share of users that each step for xi sees."""

from safecf.experiments.base import Experiment
from safecf.experiments.profiles import Profile

SHARES = (0.01, 0.05, 0.1, 0.5, 1.0)

PROFILE = Profile(
    {f"{100 * share:g} % of users": {"quantile_sample": share} for share in SHARES},
    "SAFER2 with the authors' settings, but for the share |U_b|/|U| of the users, drawn anew for "
    "each of the L = 5 Newton steps of an epoch. The paper says that U and V converge with few "
    "users as well, that z fluctuates then, and that the final qualities are almost identical.",
)

EXPERIMENT = Experiment(
    "sampling",
    "Convergence of SAFER2 by the share of users in the xi step",
    'figure "convergence profile of SAFER2 with different sampling ratio |U_b|/|U|"',
    PROFILE.cells,
    PROFILE.render,
    data=("ml-1m", "ml-20m"),
    seeds=5,
)
