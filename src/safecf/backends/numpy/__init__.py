"""The readable twin of the other backends, in float64."""

from safecf.backends.numpy.backend import NumpyBackend

__all__ = ["NumpyBackend"]
