"""Which device PyTorch works on."""

import torch


def choose_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one that works, else the CPU.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            f"device={name!r}: PyTorch finds no GPU here; try device='cpu', or install PyTorch "
            "with CUDA and look at nvidia-smi"
        )
    return device
