"""The searches of tuning: valid options, and the ranges of the paper."""

import pytest

from reproduction import data
from reproduction.search import TRIALS
from reproduction.spaces import SEARCHES, searches
from safecf import Interactions
from safecf.models import MODELS
from safecf.models.options import check_options
from safecf.models.scaling import resolve


@pytest.mark.parametrize("name", [*SEARCHES, "tiny"])
def test_searches_try_valid_options(name):
    found = searches(name)
    assert len({(each.which, each.name) for each in found}) == len(found)
    for search in found:
        kind = MODELS[search.model]
        for tried in search.first(5):
            assert set(tried) <= set(kind().get_params())
            check_options(tried, kind)


def test_the_defaults_are_inside_of_the_ranges():
    starts = {each.name: each for each in searches("ml-1m") if each.start is not None}
    assert {"iALS", "ERM-MF", "SAFER2", "SAFER2, ridge in the risk"} <= set(starts)
    for each in starts.values():
        assert each.start.keys() == each.space.keys()
        assert all(each.space[name].contains(value) for name, value in each.start.items())


def test_the_searches_on_ml_1m_start_at_the_automatic_values(real_data, monkeypatch):
    monkeypatch.setitem(data.LOCATIONS, "ml-1m", str(real_data / "ml-1m.parquet"))
    train = Interactions.from_csr(data.load_split("ml-1m").train)
    for each in searches("ml-1m"):
        if each.start is not None:
            found = resolve(MODELS[each.model](), train, None)
            assert len(found) == 2
            for name, value in found.items():
                assert each.start[name] == pytest.approx(value, rel=2e-3)


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
