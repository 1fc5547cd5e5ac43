"""Hot reload: new models without a failed request, damaged files without harm."""

import gc
import json
import math
import os
import signal
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from safecf import Interactions, Recommender, compare
from safecf.serving import Settings
from safecf.serving.live import Live, without_folders
from tests.reporting.evaluations import make
from tests.serving.conftest import best, fit, fit_on, listed, named
from tests.serving.service import PATIENCE, running, together, wait_for

ASKED = {"history": ["item 5", "item 6"], "k": 5}


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def answer_of(model):
    return best(model, *ASKED["history"], k=ASKED["k"])


def test_a_changed_file_is_loaded_by_itself(path):
    other = fit(seed=1)
    with running(path, watch=0.05) as service:
        client = service.client()
        before = listed(client.post("/recommend", ASKED))
        other.save(path)
        wait_for(lambda: client.get("/health").json["generation"] == 2)
        after = client.post("/recommend", ASKED)
        assert after.json["generation"] == 2
        assert listed(after) == answer_of(other) != before


def test_a_damaged_file_keeps_the_old_model_and_says_so(path, model):
    good = path.read_bytes()
    with running(path) as service:
        client = service.client()
        for damaged in (b"", good[:-10], good[:200] + b"x" + good[201:]):
            path.write_bytes(damaged)
            reply = client.post("/reload")
            assert reply.status == 409
            assert "the old models stay" in reply.json["detail"]
            health = client.get("/health").json
            assert health["generation"] == 1
            assert health["problem"].startswith("model.safetensors: ")
            assert str(path.parent) not in reply.text + json.dumps(health)
            assert listed(client.post("/recommend", ASKED)) == answer_of(model)
        path.unlink()
        said = "model.safetensors: there is no such file; check the path"
        assert client.post("/reload").json["detail"] == f"the old models stay: {said}"
        path.write_bytes(good)
        assert client.post("/reload").json["problem"] is None
        assert client.get("/health").json["generation"] == 2
        metrics = client.get("/metrics").body.decode()
        assert "safecf_reloads_total 1" in metrics
        assert "safecf_reload_failures_total 4" in metrics


def test_folders_are_left_out_of_messages():
    files = [Path("my models/live.safetensors")]
    for said, wanted in {
        "my models/live.safetensors: damaged": "live.safetensors: damaged",
        "/srv/a/clicks.csv: line 3": "clicks.csv: line 3",
        "item 'a/b' of '/srv/x.csv', 3/4": "item 'a/b' of 'x.csv', 3/4",
    }.items():
        assert without_folders(said, files) == wanted


def test_a_file_is_loaded_once_per_change(path):
    said = []
    live = Live(Settings(path), said.append)
    assert not live.refresh()
    fit(seed=1).save(path)
    assert [live.refresh(), live.refresh()] == [True, False]
    path.write_bytes(b"damaged")
    assert [live.refresh(), live.refresh()] == [False, False]
    assert live.failures == 1
    assert said[-1].startswith(f"the old models stay: {path}: ")  # the whole path, for the log


def test_garbage_collections_leave_what_is_loaded_alone(path, folder):
    """Old models are freed by their last reference."""
    with running(path, items=folder / "titles.parquet") as service:
        live, client = service.service.live, service.client()
        for _ in range(2):
            facts = live.current.catalogue.facts
            assert not any(each is facts for each in gc.get_objects())
            old = weakref.ref(live.current.engine("model"))
            assert client.post("/reload").status == 200
            assert old() is None
    assert any(each is facts for each in gc.get_objects())


def test_reloads_under_load_fail_no_request_and_mix_no_models(path, model):
    other = fit(seed=1)
    right = {1: answer_of(model), 0: answer_of(other)}  # by the parity of the generation
    with running(path) as service:
        stop, seen, problems = threading.Event(), set(), []

        def ask():
            client = service.client()
            while not stop.is_set():
                reply = client.post("/recommend", ASKED)
                generation = reply.json.get("generation", 0)
                if reply.status != 200 or listed(reply) != right[generation % 2]:
                    problems.append(reply)
                seen.add(generation)

        with together(*[ask] * 4):
            operator = service.client()
            for generation in range(2, 9):
                (model if generation % 2 else other).save(path)
                assert operator.post("/reload").json["generation"] == generation
                wait_for(lambda wanted=generation: wanted in seen or problems)
            stop.set()
    assert problems == []
    assert seen >= set(range(2, 9))


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_sighup_reloads(path, process):
    with process(path, "--watch", "0") as service:
        client = service.client()
        assert client.get("/health").json["generation"] == 1
        os.kill(service.pid, signal.SIGHUP)
        wait_for(lambda: client.get("/health").json["generation"] == 2)


def test_histories_follow_a_model_with_other_ids(path):
    """Reversed columns and rows: the same ids have other numbers in the new model."""
    known = named()
    turned = Interactions.from_csr(
        known.to_csr()[::-1, ::-1], user_ids=known.user_ids[::-1], item_ids=known.item_ids[::-1]
    )
    other = fit_on(turned)
    reads = []
    with running(path, data=lambda: reads.append(1) or known) as service:
        client = service.client()
        for number, model in enumerate((None, other)):
            if model is not None:
                model.save(path)
                assert client.post("/reload").status == 200
            has = {each["id"] for each in client.post("/history", user="user 9").json["items"]}
            assert has == set(known.item_ids[known.to_csr()[9].indices])
            reply = client.post("/recommend", user="user 9", k=60).json
            assert reply["history_removed"]
            assert {each["id"] for each in reply["items"]} == set(known.item_ids) - has
            parts = client.post("/explain", user="user 9", item="item 5", k=60).json["items"]
            assert {each["id"] for each in parts} == has
            assert len(reads) == number + 1


def slowly(monkeypatch):
    """Hold all loads up; return the events that one has begun and that they may go on."""
    begun, go, works = threading.Event(), threading.Event(), Recommender.load

    def load(*arguments):
        begun.set()
        assert go.wait(PATIENCE)
        return works(*arguments)

    monkeypatch.setattr(Recommender, "load", load)
    return begun, go


def test_reloads_at_the_same_time_share_one_load(path, monkeypatch):
    live = Live(Settings(path))
    begun, go = slowly(monkeypatch)
    first = live.reload()
    assert begun.wait(PATIENCE)
    others = [live.reload() for _ in range(20)]  # what they have saved may be newer than `first`
    assert not first.done()
    go.set()
    assert [each.result(PATIENCE) for each in (first, *others)] == [None] * 21
    assert (live.current.generation, live.reloads) == (3, 2)


def test_search_is_answered_while_many_wait_for_a_reload(path, monkeypatch):
    with running(path) as service:
        _, go = slowly(monkeypatch)
        statuses = []

        def reload():
            statuses.append(service.client().post("/reload").status)

        with together(*[reload] * 40):  # more than the default pool has threads
            wait_for(lambda: service.service.metrics.in_flight == 40)
            assert service.client().get("/search").status == 200
            go.set()
        assert statuses == [200] * 40
        assert service.service.live.reloads <= 40


def curves_of(served, evaluations):
    """What the page is told about an evaluation."""
    models, folder = served
    (folder / "results.json").write_text(json.dumps(evaluations.to_dict()))
    paths = {}
    for role, model in models.items():
        model.save(folder / f"{role}.safetensors")
        paths[role] = folder / f"{role}.safetensors"
    with running(**paths, evaluation=folder / "results.json") as service:
        return service.client().get("/about").json["evaluation"]


def evaluation_of(name, model, **options):
    """An evaluation of a model, as `safecf evaluate` writes it."""
    found = make(name, **options)
    params = {key: each if each != math.inf else "inf" for key, each in model.get_params().items()}
    training = {"class": type(model).__name__, "params": params}
    return replace(found, training=found.training | training)


@pytest.mark.parametrize("turned", [False, True])
def test_roles_of_curves_are_those_of_the_served_models(tmp_path, model, baseline, turned):
    """Names do not matter; options tell models of one class apart, else the order."""
    other = fit(factors=4)
    one, two = evaluation_of("a", model), evaluation_of("b", other, seed=2)
    ials = evaluation_of("SAFER2", baseline, seed=3)
    pair = compare([two, one] if turned else [one, two], resamples=9)
    pairs = ({"model": model, "baseline": other}, tmp_path)
    assert curves_of(pairs, pair)["roles"] == {"model": "a", "baseline": "b"}
    others = ({"model": fit(factors=2), "baseline": fit(factors=3)}, tmp_path)
    three = compare([one, ials, two][:: -1 if turned else 1], baseline="a", resamples=9)
    assert curves_of(others, three)["roles"] == {"model": "b", "baseline": "a"}
    mixed = compare([one, ials], resamples=9)
    both = ({"model": model, "baseline": baseline}, tmp_path)
    assert curves_of(both, mixed)["roles"] == {"model": "a", "baseline": "SAFER2"}
    assert curves_of(({"model": model}, tmp_path), ials)["roles"] == {}


@pytest.mark.parametrize("users", [40, 200])
def test_verdicts_are_those_of_the_comparison(tmp_path, model, baseline, users):
    one = evaluation_of("a", model, users=users, gain=0.15)
    two = evaluation_of("b", baseline, users=users, seed=2)
    third = replace(make("c", users=users, seed=3), training={})
    comparison = compare([two, one], resamples=60)
    served = {"model": model, "baseline": baseline}, tmp_path
    for written in (comparison, compare([third, two, one], resamples=60)):
        found = curves_of(served, written)["verdicts"]
        assert list(found) == list(comparison.metrics)
        for metric, said in found.items():
            caution = two.caution(metric, 0.3)
            assert said == [comparison.verdict("a", metric), *([caution] if caution else [])]
            assert ("too few" in caution) == (users == 40)
    assert curves_of(({"model": model}, tmp_path), comparison)["verdicts"] == {}
