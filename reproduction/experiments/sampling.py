"""`sampling`: convergence of SAFER2 by the share of users in each Newton step for xi."""

from reproduction.base import Experiment, cells_of
from reproduction.profiles import Claim, Profile

SHARES = (0.01, 0.05, 0.1, 0.5, 1.0)


def _name(share: float) -> str:
    return f"{100 * share:g} % of users"


FEW, ALL = _name(SHARES[0]), _name(SHARES[-1])

PROFILE = Profile(
    {_name(share): {"quantile_sample": share} for share in SHARES},
    "SAFER2 with the authors' settings, but for the share |U_b|/|U| of the users, drawn anew for "
    "each of the L = 5 Newton steps of an epoch. The paper says that U and V converge with few "
    "users, too.",
    (
        Claim("z fluctuates with few users", "norm of Δz", FEW, ALL),
        Claim("final qualities are almost identical", "recall", FEW, ALL, "="),
        Claim("final qualities are almost identical", "recall of the tail", FEW, ALL, "="),
    ),
)

EXPERIMENT = Experiment(
    "sampling",
    "Convergence of SAFER2 by the share of users in the xi step",
    'figure "convergence profile of SAFER2 with different sampling ratio |U_b|/|U|"',
    cells_of(PROFILE.plan),
    PROFILE.render,
    data=("ml-1m", "ml-20m"),
    seeds=5,
)
