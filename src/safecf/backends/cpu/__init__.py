"""The native backend: float32 on all cores, through `safecf._core`."""

from safecf.backends.cpu.native import CpuBackend

__all__ = ["CpuBackend"]
