"""The experiments, one file each; see the docstring of `reproduction`."""
