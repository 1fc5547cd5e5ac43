"""Which device PyTorch works on."""

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch


def devices_here() -> list[str]:
    """Return the kinds of devices that can be used here.

    >>> devices_here()
    ['cpu']
    """
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def choose_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one that works, else the CPU.

    A GPU has its number: "cuda" is the thread's current one now, whatever others choose later.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    device = torch.device(devices_here()[-1] if name == "auto" else name)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise ValueError(
                f"device={name!r}: {_no_gpu()}; try device='cpu', or see safecf doctor"
            )
        if (device.index or 0) >= count:
            raise ValueError(
                f"device={name!r}: PyTorch finds {count} of them, counted from 0; try device='cuda'"
            )
        if ":" not in name:
            # CUDA is not initialised for it: a process that is forked later could not use it
            cuda: Any = torch.cuda
            return torch.device("cuda", cuda.current_device() if cuda.is_initialized() else 0)
    return device


def described() -> str:
    """Return the version of PyTorch, its GPU, and what is missing, for `safecf doctor`.

    >>> described()
    'torch 2.13.0, GPU: NVIDIA H200, 140 GB, CUDA 13.0, triton 3.9.0'
    """
    found = f"torch {torch.__version__}"
    if "cuda" not in devices_here():
        return f"{found}, no GPU: {_no_gpu()}"
    about = torch.cuda.get_device_properties(0)
    if find_spec("triton") is None:
        kernels = "without triton, which makes it faster; try pip install triton"
    else:
        kernels = f"triton {version('triton')}"
    memory = f"{about.total_memory / 1e9:.0f} GB"
    return f"{found}, GPU: {about.name}, {memory}, CUDA {torch.version.cuda}, {kernels}"


def _no_gpu() -> str:
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA; install a build with it"
    return f"PyTorch, built for CUDA {torch.version.cuda}, finds no GPU; look at nvidia-smi"
