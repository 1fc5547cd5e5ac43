"""Which device PyTorch works on."""

import torch

NO_GPU = "PyTorch finds no GPU here; try device='cpu', or see safecf doctor for what is missing"


def devices_here() -> list[str]:
    """Return the kinds of devices that can be used here.

    >>> devices_here()
    ['cpu']
    """
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def choose_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one that works, else the CPU.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device(devices_here()[-1])
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise RuntimeError(f"device={name!r}: {NO_GPU}")
        if (device.index or 0) >= count:
            raise RuntimeError(
                f"device={name!r}: there are {count} GPUs here, counted from 0; try device='cuda'"
            )
    return device
