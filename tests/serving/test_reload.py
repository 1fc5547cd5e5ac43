"""Hot reload: new models without a failed request, damaged files without harm."""

import gc
import json
import os
import signal
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from safecf.data.matrices.interactions import Interactions
from safecf.evaluation import compare
from safecf.evaluation.json_records import options_to_json
from safecf.serving.engine import Engine
from safecf.serving.live import Live, load, read_curves, served_roles, without_folders
from safecf.serving.requests import Recommend
from safecf.serving.settings import Settings
from tests.reporting.evaluations import make
from tests.serving.conftest import fit, fit_on, named
from tests.serving.service import PATIENCE, running

ASKED = {"history": ["item 5", "item 6"], "k": 5}


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def answer_of(model):
    (found,) = Engine(model).answer([Recommend(history=tuple(ASKED["history"]), k=ASKED["k"])])
    return list(zip(found.ids, found.scores, strict=True))


def listed(reply):
    return [(each["id"], each["score"]) for each in reply.json["items"]]


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


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
        missing = client.post("/reload")
        assert missing.status == 409
        said = "model.safetensors: there is no such file; check the path"
        assert missing.json["detail"] == f"the old models stay: {said}"
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


def test_the_log_has_the_whole_path(path):
    said = []
    live = Live(Settings(path), said.append)
    path.write_bytes(b"damaged")
    live.refresh()
    assert said[-1].startswith(f"the old models stay: {path}: ")


def test_a_file_is_loaded_once_per_change(path):
    live = Live(Settings(path))
    assert not live.refresh()
    fit(seed=1).save(path)
    assert live.refresh()
    assert not live.refresh()
    path.write_bytes(b"damaged")
    assert not live.refresh()
    assert live.failures == 1
    assert not live.refresh()
    assert live.failures == 1


def test_garbage_collections_leave_what_is_loaded_alone(path, folder):
    with running(path, items=folder / "titles.parquet") as service:
        live, client = service.service.live, service.client()
        for _ in range(2):
            facts = live.current.catalogue.facts
            assert not any(each is facts for each in gc.get_objects())
            old = weakref.ref(live.current.engine("model"))
            assert client.post("/reload").status == 200
            assert old() is None
    assert any(each is facts for each in gc.get_objects())


def test_an_engine_is_freed_without_a_garbage_collection(model):
    gc.disable()
    try:
        old = weakref.ref(Engine(model))
        assert old() is None
    finally:
        gc.enable()


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

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        operator = service.client()
        for generation in range(2, 9):
            (model if generation % 2 else other).save(path)
            assert operator.post("/reload").json["generation"] == generation
            wait_for(lambda wanted=generation: wanted in seen or problems)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
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


def test_reloads_at_the_same_time_share_one_load(path, monkeypatch):
    live = Live(Settings(path))
    loads, begun, go = [], threading.Event(), threading.Event()

    def slow(*arguments):
        loads.append(threading.current_thread().name)
        begun.set()
        assert go.wait(PATIENCE)
        return load(*arguments)

    monkeypatch.setattr("safecf.serving.live.load", slow)
    first = live.reload()
    assert begun.wait(PATIENCE)
    others = [live.reload() for _ in range(20)]  # what they have saved may be newer than `first`
    assert not first.done()
    go.set()
    assert [each.result(PATIENCE) for each in (first, *others)] == [None] * 21
    assert loads == ["safecf-reload"] * 2
    assert (live.current.generation, live.reloads) == (3, 2)


def test_search_is_answered_while_many_wait_for_a_reload(path, monkeypatch):
    go = threading.Event()
    with running(path) as service:
        monkeypatch.setattr("safecf.serving.live.load", lambda *a: go.wait(PATIENCE) and load(*a))
        clients = [service.client() for _ in range(40)]  # more than the default pool has threads
        statuses = []
        threads = [
            threading.Thread(target=lambda each=each: statuses.append(each.post("/reload").status))
            for each in clients
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: service.service.metrics.in_flight == 40)
        assert service.client().get("/search").status == 200
        go.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert statuses == [200] * 40
        assert service.service.live.reloads <= 40


def evaluation_of(name, model):
    training = {"class": type(model).__name__, "params": options_to_json(model.get_params())}
    return replace(make(name), training=training)


def test_roles_of_curves_are_those_of_the_served_models(model, baseline):
    """Names do not matter; options tell models of one class apart, else the order."""
    other = fit(factors=4)
    one, two, ials = (
        evaluation_of(*each) for each in (("a", model), ("b", other), ("SAFER2", baseline))
    )
    served = {"model": Engine(model), "baseline": Engine(other)}
    assert served_roles([one, two], served) == {"model": "a", "baseline": "b"}
    assert served_roles([two, one], served) == {"model": "a", "baseline": "b"}
    twice = {"model": Engine(fit(factors=2)), "baseline": Engine(fit(factors=3))}
    assert served_roles([one, ials, two], twice) == {"model": "a", "baseline": "b"}
    assert served_roles([one, ials], {"model": Engine(model), "baseline": Engine(baseline)}) == {
        "model": "a",
        "baseline": "SAFER2",
    }
    assert served_roles([ials], {"model": Engine(model)}) == {}


@pytest.mark.parametrize("users", [40, 200])
def test_verdicts_are_those_of_the_comparison(tmp_path, model, baseline, users):
    def made(name, kind, **options):
        found = make(name, users=users, **options)
        return replace(found, training=found.training | {"class": kind})

    one, two = made("a", "SAFER2", gain=0.15), made("b", "IALS", seed=2)
    third = made("c", "EASE", seed=3)
    comparison = compare([two, one], resamples=60)
    engines = {"model": Engine(model), "baseline": Engine(baseline)}
    path = tmp_path / "results.json"
    for written in (comparison, compare([third, two, one], resamples=60)):
        path.write_text(json.dumps(written.to_dict()))
        found = read_curves(path, engines)["verdicts"]
        assert list(found) == list(comparison.metrics)
        for metric, said in found.items():
            caution = two.caution(metric, 0.3)
            assert said == [comparison.verdict("a", metric), *([caution] if caution else [])]
            assert ("too few" in caution) == (users == 40)
    assert read_curves(path, {"model": engines["model"]})["verdicts"] == {}
    path.write_text(json.dumps(one.to_dict()))
    assert read_curves(path, engines)["verdicts"] == {}
