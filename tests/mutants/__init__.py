"""Mutants: which changes of the code no test notices. `make mutate` runs them, CI does not."""
