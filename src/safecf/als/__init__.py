"""The paper, in reading order: kernels, quantile, risk, loss, rows, solvers, sweeps, loop."""
