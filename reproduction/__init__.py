"""Experiments of the paper, and what benchmarks share with them: run, store, write pages.

`experiment` declares what is run, `run` runs it, `store` keeps it, `page` shows it, `command` is
the command line. The text of a page is a template in `pages/`.
"""

# In the order of the paper; `tuning` comes before the experiments that use its presets.
_AT = {
    "cvar": "illustrations:CVAR",
    "check-function": "illustrations:CHECK_FUNCTION",
    "tuning": "tuning:EXPERIMENT",
    "table-1": "table_1:EXPERIMENT",
    "quantiles": "table_1:QUANTILES",
    "robustness": "ratios:ROBUSTNESS",
    "runtime": "runtime:EXPERIMENT",
    "walltime": "convergence:WALLTIME",
    "bandwidth": "convergence:BANDWIDTH",
    "sampling": "convergence:SAMPLING",
    "xi-steps": "convergence:XI_STEPS",
    "kernels": "ratios:KERNELS",
    "dimensions": "convergence:DIMENSIONS",
    "frontier": "frontier:EXPERIMENT",
    "sensitivity": "sensitivity:EXPERIMENT",
    "constants": "constants:EXPERIMENT",
    "defaults": "defaults:EXPERIMENT",
}
NAMES = {name: f"reproduction.experiments.{at}" for name, at in _AT.items()}
