"""The frontier: which models it has, which are compared, and how they are drawn."""

from collections import defaultdict

from reproduction.base import Options
from reproduction.experiments import frontier
from safecf.models import MODELS


def test_each_form_has_its_settings():
    found = frontier.models(Options("ml-1m"))
    assert found["SAFER2, defaults"].options == {}
    assert found["SAFER2, defaults"].model == "SAFER2"
    form = {name: each.make().get_params().get("ridge_in_risk") for name, each in found.items()}
    assert form["SAFER2, defaults"] is True
    assert form["SAFER2, tuned"] is True
    assert form["SAFER2, tuned, ridge outside"] is False
    assert form["SAFER2, tuned, ridge outside, rho = 1"] is False
    assert found["SAFER2, tuned, ridge outside, rho = 1"].make().normalisation == 1
    assert {each.model for each in found.values()} <= set(MODELS)


def test_there_is_an_ials_as_large_as_safer2():
    sizes = {
        name: each.make().get_params().get("factors", 0)
        for name, each in frontier.models(Options("ml-1m")).items()
    }
    largest = max(size for name, size in sizes.items() if name.startswith("SAFER2"))
    assert largest in (size for name, size in sizes.items() if name.startswith("iALS, tuned"))


def test_everything_else_is_compared_with_three_forms_of_safer2():
    names = list(frontier.models(Options("ml-1m")))
    found = frontier.pairs(names)
    assert len(set(found)) == len(found)
    assert {name for pair in found for name in pair} == set(names)
    others = [name for name in names if not name.startswith("SAFER2")]
    for ours in ("SAFER2, defaults", "SAFER2, tuned", "SAFER2, tuned, ridge outside"):
        assert [other for model, other in found if model == ours and other in others] == others
    assert ("iALS, tuned", "iALS, defaults") in found


def test_variants_of_a_model_have_different_markers():
    markers = defaultdict(list)
    for name in frontier.models(Options("ml-1m")):
        markers[name.split(",")[0]].append(frontier.marker(name))
    assert len(markers["SAFER2"]) == 5
    for each in markers.values():
        assert len(set(each)) == len(each)
