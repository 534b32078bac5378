"""The host's table of messages, without a Neovim: a completer that asks a fake server, or none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor import protocol
from lcursor.fim.outcomes import HIDDEN_S, MIN_OUTCOMES, MIN_REJECTED
from lcursor.fim.scheduler import IDLE_S
from lcursor.host.dispatch import Dispatch
from lcursor.llm.server_state import ServerFolder
from tests.fakes.engine import Models, request, wait_for, wait_queue
from tests.fakes.heard import WAIT_S, Heard
from tests.fakes.loopback import sse
from tests.fakes.model_server import ModelServer

CHUNK = {"path": "/r/a.py", "name": "a.py", "first_row": 0, "symbols": []}
OUTCOME = {
    "id": 7,
    "filetype": "lua",
    "outcome": "rejected",
    "source": "cache",
    "shown_chars": 8,
    "kept_chars": 0,
    "through_keys": 0,
    "shown_ms": 700,
    "latency_ms": 31.5,
    "confidence": 0.51,
}


def hello(models: object = None, **completion: object) -> dict[str, object]:
    """Return the first message of an editor with these settings."""
    settings = {"models": models, "completion": completion}
    return {"protocol": protocol.PROTOCOL, "version": "0.1.0", "config": settings}


class Service(Heard):
    """A dispatch and what it sent."""

    def __init__(self, server: ModelServer) -> None:
        super().__init__()
        self.stopped = 0
        self.server = server
        self.dispatch = Dispatch(self._tell, self._stop)

    def _stop(self) -> None:
        self.stopped += 1

    def errors(self) -> list[str]:
        return [params["code"] for params in self.told("error")]

    def states(self) -> list[str]:
        return [params["state"] for params in self.told("state")]

    def ready(self, **more: object) -> None:
        """Connect to the server, with more settings of it."""
        models = {"desk": {"url": self.server.url, **more}}
        self.dispatch("hello", hello(models, model="desk"))
        self.wait("state", count=2)
        assert self.states() == ["loading_model", "ready"]

    def change(self, server: ModelServer, **completion: object) -> None:
        """Change settings."""
        models = {"desk": {"url": server.url}}
        completion = {"model": "desk", **completion}
        self.dispatch("config", {"config": {"models": models, "completion": completion}})

    def complete(self, number: int) -> str:
        """Ask for a completion; return its text."""
        self.dispatch("fim.request", request(number))
        return str(self.wait("fim.done", number)["text"])

    def stats(self) -> Mapping[str, Any]:
        """Ask for what became of suggestions."""
        before = len(self.told("stats"))
        self.dispatch("stats.request", {})
        return self.wait("stats", count=before + 1)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as fake:
        fake.llama("return a")
        yield fake


@pytest.fixture
def service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: ModelServer
) -> Iterator[Service]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "models"))
    service = Service(server)
    yield service
    service.dispatch.close()


def test_hello_is_answered_and_the_server_reached(service: Service) -> None:
    service.ready()
    assert service.sent[0][0] == "ready"


def test_another_protocol_is_reported_and_nothing_is_loaded(service: Service) -> None:
    service.dispatch("hello", {**hello(), "protocol": 999})
    service.dispatch.close()
    assert [method for method, _ in service.sent] == ["ready", "error"]
    assert service.errors() == ["protocol_mismatch"]
    assert not service.server.asked


def test_requests_are_answered(service: Service) -> None:
    service.ready()
    assert service.complete(7) == "return a"
    service.dispatch("fim.more", {"id": 7, "typed": "re"})
    assert service.wait("fim.alternatives") == {"id": 7, "texts": []}  # a server knows none
    row = sse({"content": "return value, ", "stop": False})
    service.server.routes["/completion"] = (200, "text/event-stream", service.server.drip(row))
    service.dispatch("fim.request", request(8))
    service.wait("fim.partial", 8)
    service.dispatch("fim.cancel", {"id": 8})
    assert service.wait("fim.done", 8)["reason"] == "cancelled"
    assert not service.errors()


def test_outcomes_are_kept_reported_and_learned_from(service: Service, tmp_path: Path) -> None:
    service.dispatch("hello", hello(min_confidence=0.5))
    for _ in range(MIN_OUTCOMES + 10):
        service.dispatch("fim.outcome", OUTCOME)
    said = service.stats()
    assert (said["total"]["shown"], said["rows"][0]["filetype"]) == (MIN_OUTCOMES + 10, "lua")
    assert said["path"] == str(tmp_path / "lcursor/outcomes.sqlite3")
    assert service.stats()["total"]["threshold"] > 0.5  # nobody wants what is so unsure
    service.dispatch("stats.reset", {})
    assert service.wait("stats", count=3)["total"]["shown"] == 0
    assert service.stats()["total"]["threshold"] == 0.5
    service.wait("state", count=2)
    assert service.errors() == ["model_missing"]


def test_a_kind_of_next_edit_that_is_rejected_is_hidden(service: Service) -> None:
    service.ready()
    outcome = {"kind": "rename", "filetype": "lua", "is_accepted": False}
    for _ in range(MIN_REJECTED):
        service.dispatch("next_edit.outcome", outcome)
    (hidden,) = service.wait("next_edit.gate")["hidden"]
    assert (hidden["kind"], hidden["filetype"]) == ("rename", "lua")
    assert time.time() < hidden["until_s"] <= time.time() + HIDDEN_S
    service.dispatch("next_edit.outcome", {**outcome, "is_accepted": True})
    assert service.wait("next_edit.gate", count=2) == {"hidden": []}


def test_the_adapted_threshold_stays_after_a_change_of_the_model(service: Service) -> None:
    service.dispatch("hello", hello(min_confidence=0.5))
    for _ in range(MIN_OUTCOMES + 10):
        service.dispatch("fim.outcome", OUTCOME)
    service.stats()
    service.change(service.server, min_confidence=0.5, model="other")
    service.wait("state", count=4)
    assert service.states() == ["loading_model", "failed"] * 2
    assert service.stats()["total"]["threshold"] > 0.5


def test_an_unknown_outcome_is_rejected(service: Service) -> None:
    service.dispatch("fim.outcome", {**OUTCOME, "outcome": "loved"})
    assert service.errors() == ["message_invalid"]


def test_pieces_of_files_come_into_the_prompt(service: Service) -> None:
    service.ready()
    text = "".join(f"def helper_{number}():\n    return {number}\n" for number in range(4))
    service.dispatch("context.chunk", {**CHUNK, "text": text, "kind": "yanked"})
    number, deadline_s = 1, time.monotonic() + WAIT_S
    service.complete(number)
    while "helper_0" not in service.server.asked[-1][3]["prompt"]:
        assert time.monotonic() < deadline_s
        time.sleep(2 * IDLE_S)  # they are taken in where nobody has asked for a moment
        number += 1
        service.complete(number)
    service.dispatch("context.chunk", {**CHUNK, "text": "x", "kind": "stolen"})
    assert service.errors() == ["message_invalid"]


def test_pieces_of_files_leave_the_prompt_when_files_are_excluded(service: Service) -> None:
    service.ready()
    completer = service.dispatch._completer
    assert completer is not None
    text = "".join(f"def helper_{number}():\n    return {number}\n" for number in range(4))
    service.dispatch("context.chunk", {**CHUNK, "text": text, "kind": "yanked"})
    wait_queue(completer)
    assert completer.ring.admit()
    service.complete(1)
    assert "helper_0" in service.server.asked[-1][3]["prompt"]
    config = {"models": {"desk": {"url": service.server.url}}, "completion": {"model": "desk"}}
    service.dispatch("config", {"config": {**config, "privacy": {"exclude": ["a.py"]}}})
    service.wait("state", count=4)
    service.complete(2)
    assert "helper_0" not in service.server.asked[-1][3]["prompt"]
    assert service.states() == ["loading_model", "ready"] * 2, "then the editor sends pieces again"


def test_a_key_that_is_sent_unencrypted_is_warned_of_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "sk-1")
    service.ready(key_env="KEY")
    assert service.errors() == [], "a server on this machine"
    models = {"big": {"url": "http://192.0.2.1:8", "key_env": "KEY"}}
    for tokens in (3, 4):
        completion = {"model": "desk", "max_tokens": tokens}
        models["desk"] = {"url": service.server.url}
        service.dispatch("config", {"config": {"models": models, "completion": completion}})
    (warning,) = service.told("error")
    assert (warning["code"], warning["level"]) == ("key_exposed", "warn")
    assert "http://192.0.2.1:8" in warning["message"]


def test_a_changed_budget_keeps_the_connection(service: Service) -> None:
    service.ready()
    service.change(service.server, max_tokens=3, min_confidence=0.1)
    service.complete(1)
    assert service.server.asked[-1][3]["n_predict"] == 3
    assert service.server.paths().count("/props") == 1
    assert service.states() == ["loading_model", "ready"]


def test_another_server_is_asked_from_then_on(service: Service) -> None:
    service.ready()
    with ModelServer() as other:
        other.llama("pass")
        service.change(other)
        assert service.complete(1) == "pass"
        assert service.states() == ["loading_model", "ready"] * 2
        assert not service.errors()


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("dance", {}, "message_invalid"),
        ("fim.request", {"id": 1}, "message_invalid"),
        ("fim.cancel", {"id": 1}, "message_invalid"),  # before hello
        ("hello", "text", "message_invalid"),
        ("hello", {**hello(), "config": {"completion": 3}}, "config_invalid"),
        ("hello", hello(threads="two"), "config_invalid"),
    ],
)
def test_a_bad_message_is_an_error_and_the_host_goes_on(
    service: Service, method: str, params: object, code: str
) -> None:
    service.dispatch(method, params)
    assert service.errors() == [code]
    service.ready()


def test_a_bug_is_logged_with_its_trace_and_reported_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(service.dispatch.handlers, "fim.cancel", lambda params: 1 / 0)
    service.dispatch("fim.cancel", {"id": 1})
    assert service.errors() == ["internal"]
    assert "ZeroDivisionError" in service.told("log")[0]["message"]


def test_shutdown_stops_the_loop(service: Service) -> None:
    service.dispatch("shutdown", {})
    assert service.stopped == 1
    assert service.dispatch.close()


def test_a_missing_model_is_reported_with_the_command_that_helps(service: Service) -> None:
    service.dispatch("hello", hello())
    error = service.wait("error")
    assert error["code"] == "model_missing"
    assert "models pull qwen2.5-coder-0.5b" in error["hint"]
    assert service.states() == ["loading_model", "failed"]


def test_the_chat_server_pauses_until_the_end_of_the_last_completion(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, may_end = Models(), threading.Event()
    signals = list[bool]()
    monkeypatch.setattr("lcursor.host.dispatch.open_backend", models.open)
    monkeypatch.setattr(ServerFolder, "signal", lambda _, is_begin: signals.append(is_begin))
    service.dispatch("hello", hello(model="m"))
    service.wait("state", count=2)
    models.acts["complete"] = wait_for(may_end)
    for number in (1, 2):
        service.dispatch("fim.request", request(number))
    assert signals == [True, True]
    may_end.set()
    service.wait("fim.done", 2)
    assert signals == [True, True, False], "the end of the first one does not count"


def test_completions_elsewhere_do_not_pause_the_chat_server(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = list[bool]()
    monkeypatch.setattr(ServerFolder, "signal", lambda _, is_begin: signals.append(is_begin))
    service.ready()
    service.complete(1)
    assert True not in signals
