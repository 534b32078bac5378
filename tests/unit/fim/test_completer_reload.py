"""What a change of settings does to the model: applied or loaded again, never two at once."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from typing import Any

import pytest

from lcursor.config import CompletionConfig, ModelConfig
from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim import completer as module
from lcursor.fim.completer import Completer
from lcursor.protocol.fim import ContextChunk
from tests.fakes.engine import FakeEngine, Models, fail, request, wait_for, wait_queue
from tests.unit.fim.conftest import Start

CONFIG = CompletionConfig(model="one")
REMOTE = CompletionConfig(model="x", endpoint=ModelConfig("x", url="http://127.0.0.1:1"))


@pytest.fixture
def completer(start: Start) -> Completer:
    return start(CONFIG)


def test_a_budget_applies_to_the_loaded_model(models: Models, completer: Completer) -> None:
    for number in range(20):
        completer.configure(replace(CONFIG, min_confidence=number / 40, max_tokens=number + 1))
    models.wait_call("configure")
    completer.request(request(1))
    models.wait("fim.done", 1)
    assert models.engine is not None
    assert models.engine.config == replace(CONFIG, min_confidence=19 / 40, max_tokens=20)
    assert models.wait("fim.done", 1)["stats"]["threshold"] == round(19 / 40, 4)
    assert models.names("open", "close") == [("open", "one")]
    assert [told["state"] for told in models.told("state")] == ["loading_model", "ready"]


def test_another_model_is_opened_when_the_old_one_is_freed(
    models: Models, completer: Completer
) -> None:
    for number in range(20):
        completer.configure(replace(CONFIG, model=f"m{number}"))
        models.wait_call("open", number + 2)
    assert completer.close(10)
    calls = models.names("open", "close")
    assert [what for what, _ in calls] == ["open", "close"] * 21
    assert [model for _, model in calls[::2]] == [model for _, model in calls[1::2]]
    assert {thread for _, _, thread in models.notes} == {"lcursor-engine"}


def test_requests_around_a_change_end_once_and_the_new_model_answers(
    models: Models, completer: Completer
) -> None:
    is_open = threading.Event()

    def compute() -> None:
        del models.acts["complete"]
        assert models.engine is not None
        models.engine.wait_abort()

    models.acts["complete"] = compute
    completer.request(request(1))
    models.wait_call("complete")
    models.acts["open"] = wait_for(is_open)
    completer.configure(replace(CONFIG, model="two"))
    assert models.wait("fim.done", 1)["reason"] == "cancelled"
    models.wait_call("open", 2)
    completer.request(request(2))  # waits for the load
    completer.request(request(3))
    assert models.wait("fim.done", 2)["reason"] == "cancelled"
    is_open.set()
    assert models.wait("fim.done", 3)["text"] == "two"
    assert [told["id"] for told in models.told("fim.done")] == [1, 2, 3]


def test_callers_do_not_wait_while_a_model_is_saved_and_freed(
    models: Models, completer: Completer
) -> None:
    may_end = threading.Event()
    models.acts["close"] = wait_for(may_end)
    completer.configure(replace(CONFIG, model="two"))
    models.wait_call("close")
    completer.configure(replace(CONFIG, model="three"))
    completer.request(request(1))
    completer.cancel(1)
    assert models.names("save", "open") == [("open", "one"), ("save", "one")]
    may_end.set()  # only now: each of the calls above has returned
    models.wait_call("open", 2)
    assert models.names("open")[-1] == ("open", "three")


def test_nothing_that_came_before_files_were_excluded_is_saved_or_used(
    models: Models, completer: Completer
) -> None:
    may_end = threading.Event()
    models.acts["complete"] = wait_for(may_end)
    completer.request(request(1))
    models.wait_call("complete")
    text = "first\nsecond\nthird"
    completer.add_chunk(  # waits for the request
        ContextChunk(path="/r/a", name="a", first_row=0, text=text, kind="yanked", symbols=[])
    )
    completer.configure(replace(CONFIG, excluded=("a",)))
    may_end.set()
    models.wait_call("open", 2)
    wait_queue(completer)
    assert not completer.ring.admit()
    assert models.names("save", "close") == [("close", "one")]


def test_a_load_reports_its_progress(models: Models, completer: Completer) -> None:
    def load() -> None:
        for fraction in (0.0, 0.25, 0.251, 0.75, 0.5, 1.0):
            assert models.progress(fraction)

    models.acts["open"] = load
    completer.configure(replace(CONFIG, model="two"))
    models.wait("state", count=8)
    told = [(one["state"], one["detail"], one["progress"]) for one in models.told("state")[2:]]
    loading = [("loading_model", "two", at) for at in (0.0, 0.0, 0.25, 0.75, 1.0)]
    assert told == [*loading, ("ready", "two", -1.0)]


def test_a_load_stops_when_another_model_is_wanted(models: Models, completer: Completer) -> None:
    goes_on: list[bool] = []
    may_look = threading.Event()

    def load() -> None:
        del models.acts["open"]
        assert may_look.wait(20)
        goes_on.append(models.progress(0.5))
        raise Cancelled("the load was stopped")

    models.acts["open"] = load
    completer.configure(replace(CONFIG, model="two"))
    models.wait_call("open", 2)
    completer.configure(replace(CONFIG, model="three"))
    may_look.set()
    models.wait_call("open", 3)
    completer.request(request(1))
    assert models.wait("fim.done", 1)["text"] == "three"
    assert goes_on == [False]


def test_a_model_that_cannot_be_opened_leaves_room_for_the_next(
    models: Models, completer: Completer
) -> None:
    def refuse() -> None:
        raise OutOfMemory("does not fit")

    models.acts["open"] = refuse
    completer.configure(replace(CONFIG, model="huge"))
    models.wait("error")
    completer.request(request(1))
    assert models.wait("fim.done", 1)["reason"] == "failed"
    del models.acts["open"]
    completer.configure(CONFIG)
    completer.request(request(2))
    assert models.wait("fim.done", 2)["text"] == "one"
    assert models.names("open", "close") == [
        ("open", "one"), ("close", "one"), ("open", "huge"), ("open", "one"),
    ]  # fmt: skip


def test_a_model_that_cannot_be_saved_is_freed(models: Models, completer: Completer) -> None:
    models.acts["save"] = fail
    completer.configure(replace(CONFIG, model="two"))
    models.wait("error")
    models.wait_call("close")
    del models.acts["save"]
    completer.configure(replace(CONFIG, model="three"))
    completer.request(request(1))
    assert models.wait("fim.done", 1)["text"] == "three"


@pytest.mark.parametrize("what", ["complete", "alternatives", "idle", "warm", "configure"])
def test_an_exception_ends_a_piece_of_work_and_not_the_engine(
    models: Models, completer: Completer, what: str
) -> None:
    models.acts[what] = fail
    completer.request(request(1))
    models.wait("fim.done", 1)
    if what == "alternatives":
        completer.find_alternatives(1)
        assert models.wait("fim.alternatives", 1)["texts"] == []
    completer.warm(request(1))
    completer.configure(replace(CONFIG, max_tokens=2))
    models.wait_call(what)
    models.wait("error")
    del models.acts[what]
    completer.request(request(2))
    assert models.wait("fim.done", 2)["text"] == "one"
    assert len(models.told("fim.done", 1)) == 1


def test_each_setting_is_one_of_a_model_or_of_a_server_or_applied() -> None:
    names = {field.name for field in fields(CompletionConfig)}
    assert names > module.NEEDS_MODEL
    server = replace(CONFIG, endpoint=ModelConfig("x", url="http://127.0.0.1:1"))
    assert module.needs_reload(CONFIG, server)
    assert module.needs_reload(server, CONFIG)
    assert not module.needs_reload(server, replace(server, threads=2))
    assert module.needs_reload(server, replace(server, endpoint=ModelConfig("x", url="unix:///x")))


def test_a_server_is_connected_once_and_again_after_it_was_lost(
    models: Models, completer: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[bool] = []

    def connect(engine: Any) -> None:
        connected.append(True)
        engine.is_connected = True

    monkeypatch.setattr(FakeEngine, "connect", connect, raising=False)
    monkeypatch.setattr(FakeEngine, "is_connected", False, raising=False)
    completer.configure(REMOTE)
    completer.request(request(1))
    completer.request(request(2))
    models.wait("fim.done", 2)
    assert connected == [True]
    assert models.told("state")[-1]["state"] == "ready"
    monkeypatch.setattr(models.engine, "is_connected", False)
    completer.request(request(3))
    models.wait("fim.done", 3)
    assert connected == [True, True]


def test_a_server_whose_key_cannot_be_read_is_not_asked_at_each_key(
    models: Models, completer: Completer
) -> None:
    models.acts["open"] = fail
    completer.configure(REMOTE)
    models.wait_call("open", 2)
    for number in range(1, 4):
        completer.request(request(number))
        assert models.wait("fim.done", number)["reason"] == "failed"
    assert len(models.names("open")) == 2
    completer.request(request(4) | {"trigger": "manual"})
    assert models.wait("fim.done", 4)["reason"] == "failed"
    assert len(models.names("open")) == 3
    del models.acts["open"]
    completer.request(request(5) | {"trigger": "manual"})
    assert models.wait("fim.done", 5)["reason"] != "failed"
