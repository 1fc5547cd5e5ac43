"""The PyTorch backend: float32 on a GPU, or on the CPU."""

from safecf.backends.torch.backend import TorchBackend

__all__ = ["TorchBackend"]
