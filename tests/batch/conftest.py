"""Models that are asked for parts of seven users."""

import pytest

from safecf import EASE, IALS
from safecf.models import answers
from tests.batch.problem import DATA


@pytest.fixture(scope="module", params=["IALS", "EASE"])
def model(request):
    made = IALS(4, iterations=2, random_state=0) if request.param == "IALS" else EASE(1.0)
    return made.fit(DATA, show_progress=False)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(answers, "ROWS", 7)
