"""Functions of cases that are fast, fail, or end their process, and an experiment of them."""

import os
import signal
from pathlib import Path

import numpy as np

from reproduction.experiment import Case, Experiment

LAST = 5


def double(settings):
    """Return twice the number, and write a line to a log, so that calls can be counted."""
    if "log" in settings:
        with Path(settings["log"]).open("a") as file:
            file.write(f"{settings['number']}\n")
    number = settings["number"]
    return {"rows": [{"number": number, "twice": 2 * number}], "scores": np.linspace(0, 1, 7)}


def fail(settings):
    """Fail whatever the number."""
    raise ValueError("there are no data")


def fail_on_two(settings):
    """Fail at one of the numbers."""
    return fail(settings) if settings["number"] == 2 else double(settings)


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


def cases(run=double, **more):
    """Return a case per number."""
    return [Case(run, {"number": number, **more}) for number in range(LAST)]


def parts(run):
    """Return an experiment with a part for the even numbers and one for the odd ones."""
    return Experiment(
        "twice",
        "Twice",
        lambda options: [
            case._replace(part=("even", "odd")[case.settings["number"] % 2]) for case in cases(run)
        ],
        lambda results, options: {"rows": [row for each in results for row in each.record["rows"]]},
        parts={"even": "Even numbers", "odd": "Odd numbers"},
    )


WHOLE, BROKEN = parts(double), parts(fail_on_two)
