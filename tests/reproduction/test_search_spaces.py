"""The searches of tuning: valid options, and the ranges of the paper."""

import pytest

from reproduction.search import TRIALS
from reproduction.spaces import SEARCHES, searches
from safecf.models import MODELS
from safecf.models.options import check_options


@pytest.mark.parametrize("data", [*SEARCHES, "tiny"])
def test_searches_try_valid_options(data):
    found = searches(data)
    assert len({(each.which, each.name) for each in found}) == len(found)
    for search in found:
        kind = MODELS[search.model]
        for tried in search.first(5):
            assert set(tried) <= set(kind().get_params())
            check_options(tried, kind)


def test_a_smaller_search_is_a_part_of_the_whole():
    for search in searches("ml-1m"):
        whole = search.first(TRIALS)
        assert all(each in whole for each in search.first(3))


def test_the_paper_s_ranges():
    safer2 = next(s for s in searches("ml-1m") if (s.which, s.name) == ("grid", "SAFER2"))
    tried = safer2.first(TRIALS)
    for option, low, high in (
        ("unobserved_weight", 1e-4, 1e-2),
        ("regularization", 1e-4, 1e-2),
        ("bandwidth", 0.1, 1.0),
    ):
        values = [each[option] for each in tried]
        assert (min(values), max(values)) == (low, high)
    assert {each["tail"] for each in tried} == {0.3}
    assert (safer2.epochs, safer2.final) == ((20,), (50,))
