"""Functions of cells that are fast, fail, or end their process."""

import os
import signal
import time
from pathlib import Path

import numpy as np


def double(settings):
    """Return twice the number, and write a line to a log, so that calls can be counted."""
    if "log" in settings:
        with Path(settings["log"]).open("a") as file:
            file.write(f"{settings['number']}\n")
    return {"twice": 2 * settings["number"], "scores": np.linspace(0, 1, settings["number"] + 1)}


def other(settings):
    """Return something else for the same settings."""
    return {"twice": 0}


def fail_on_two(settings):
    """Fail at one of the numbers."""
    if settings["number"] == 2:
        raise ValueError("two is too many")
    return double(settings)


def fail(settings):
    """Fail whatever the number."""
    raise ValueError("there are no data")


def die_on_two(settings):
    """Be killed at one of the numbers, as when memory runs out."""
    if settings["number"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return double(settings)


def interrupt_on_two(settings):
    """Press Ctrl-C at one of the numbers."""
    if settings["number"] == 2:
        raise KeyboardInterrupt
    return double(settings)


def slow_from_two_on(settings):
    """Take a minute, unless the number is small."""
    if settings["number"] >= 2:
        time.sleep(60)
    return double(settings)
