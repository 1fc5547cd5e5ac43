"""The native backend: float32 on all cores, through `safecf._core`."""

from safecf.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
