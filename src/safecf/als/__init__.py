"""The paper, in reading order, and the protocols of a backend.

`kernels`, `population`, `quantile`, `risk`, `loss`, `rows`, `solvers`, `state`, `sweeps`, `loop`,
`parts`; `capabilities` says what a backend has to provide. Nothing here imports one.
"""
