"""The readable twin of the other backends, in float64."""

from safecf.backends.numpy.twin import NumpyBackend

__all__ = ["NumpyBackend"]
