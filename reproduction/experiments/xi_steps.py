"""`xi-steps`: convergence of SAFER2 by the number of Newton steps for xi."""

from reproduction.base import Experiment, cells_of
from reproduction.profiles import Claim, Profile

STEPS = (1, 2, 5, 10)
SHARES = (1.0, 0.1, 0.01)
DRAWN = 0.1  # the share of users in the paper's figures


def _name(steps: int, share: float) -> str:
    return f"L = {steps}, {100 * share:g} % of users"


LEAST, MOST = _name(STEPS[0], SHARES[-1]), _name(5, SHARES[0])  # the paper has L = 5

PROFILE = Profile(
    {
        _name(steps, share): {"quantile_steps": steps, "quantile_sample": share}
        for share in SHARES
        for steps in STEPS
    },
    "SAFER2 with the authors' settings, but for the number L of Newton steps per epoch, and the "
    "share of users that each of them sees.",
    (
        Claim("z fluctuates with few steps and users", "norm of Δz", LEAST, MOST),
        Claim("quality is slightly worse where both are small", "recall", MOST, LEAST),
        Claim("that of the tail in particular", "recall of the tail", MOST, LEAST),
    ),
    tuple(_name(steps, DRAWN) for steps in STEPS),
)

EXPERIMENT = Experiment(
    "xi-steps",
    "Convergence of SAFER2 by the number of Newton steps",
    'figure "convergence profile of SAFER2 with different number of NR iterations L"',
    cells_of(PROFILE.plan),
    PROFILE.render,
    data=("ml-1m", "ml-20m"),
    seeds=5,
)
