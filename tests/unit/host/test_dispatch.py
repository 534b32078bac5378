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
from tests.fakes.engine import Models, request, wait_for
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


class Desk(Heard):
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
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: ModelServer) -> Iterator[Desk]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "models"))
    desk = Desk(server)
    yield desk
    desk.dispatch.close()


def test_hello_is_answered_and_the_server_reached(desk: Desk) -> None:
    desk.ready()
    assert desk.sent[0][0] == "ready"


def test_another_protocol_is_reported_and_nothing_is_loaded(desk: Desk) -> None:
    desk.dispatch("hello", {**hello(), "protocol": 999})
    desk.dispatch.close()
    assert [method for method, _ in desk.sent] == ["ready", "error"]
    assert desk.errors() == ["protocol_mismatch"]
    assert not desk.server.asked


def test_requests_are_answered(desk: Desk) -> None:
    desk.ready()
    assert desk.complete(7) == "return a"
    desk.dispatch("fim.more", {"id": 7, "typed": "re"})
    assert desk.wait("fim.alternatives") == {"id": 7, "texts": []}  # a server knows none
    row = sse({"content": "return value, ", "stop": False})
    desk.server.routes["/completion"] = (200, "text/event-stream", desk.server.drip(row))
    desk.dispatch("fim.request", request(8))
    desk.wait("fim.partial", 8)
    desk.dispatch("fim.cancel", {"id": 8})
    assert desk.wait("fim.done", 8)["reason"] == "cancelled"
    assert not desk.errors()


def test_outcomes_are_kept_reported_and_learned_from(desk: Desk, tmp_path: Path) -> None:
    desk.dispatch("hello", hello(min_confidence=0.5))
    for _ in range(MIN_OUTCOMES + 10):
        desk.dispatch("fim.outcome", OUTCOME)
    said = desk.stats()
    assert (said["total"]["shown"], said["rows"][0]["filetype"]) == (MIN_OUTCOMES + 10, "lua")
    assert said["path"] == str(tmp_path / "lcursor/outcomes.sqlite3")
    assert desk.stats()["total"]["threshold"] > 0.5  # nobody wants what is so unsure
    desk.dispatch("stats.reset", {})
    assert desk.wait("stats", count=3)["total"]["shown"] == 0
    assert desk.stats()["total"]["threshold"] == 0.5
    desk.wait("state", count=2)
    assert desk.errors() == ["model_missing"]


def test_a_kind_of_next_edit_that_is_rejected_is_hidden(desk: Desk) -> None:
    desk.ready()
    outcome = {"kind": "rename", "filetype": "lua", "is_accepted": False}
    for _ in range(MIN_REJECTED):
        desk.dispatch("next_edit.outcome", outcome)
    (hidden,) = desk.wait("next_edit.gate")["hidden"]
    assert (hidden["kind"], hidden["filetype"]) == ("rename", "lua")
    assert time.time() < hidden["until_s"] <= time.time() + HIDDEN_S
    desk.dispatch("next_edit.outcome", {**outcome, "is_accepted": True})
    assert desk.wait("next_edit.gate", count=2) == {"hidden": []}


def test_the_adapted_threshold_stays_after_a_change_of_the_model(desk: Desk) -> None:
    desk.dispatch("hello", hello(min_confidence=0.5))
    for _ in range(MIN_OUTCOMES + 10):
        desk.dispatch("fim.outcome", OUTCOME)
    desk.stats()
    desk.change(desk.server, min_confidence=0.5, model="other")
    desk.wait("state", count=4)
    assert desk.states() == ["loading_model", "failed"] * 2
    assert desk.stats()["total"]["threshold"] > 0.5


def test_an_outcome_that_nobody_knows_is_rejected(desk: Desk) -> None:
    desk.dispatch("fim.outcome", {**OUTCOME, "outcome": "loved"})
    assert desk.errors() == ["message_invalid"]


def test_pieces_of_files_come_into_the_prompt(desk: Desk) -> None:
    desk.ready()
    text = "".join(f"def helper_{number}():\n    return {number}\n" for number in range(4))
    desk.dispatch("context.chunk", {**CHUNK, "text": text, "kind": "yanked"})
    number, deadline_s = 1, time.monotonic() + WAIT_S
    desk.complete(number)
    while "helper_0" not in desk.server.asked[-1][3]["prompt"]:
        assert time.monotonic() < deadline_s
        time.sleep(2 * IDLE_S)  # they are taken in where nobody has asked for a moment
        number += 1
        desk.complete(number)
    desk.dispatch("context.chunk", {**CHUNK, "text": "x", "kind": "stolen"})
    assert desk.errors() == ["message_invalid"]


def test_a_key_that_is_sent_unencrypted_is_warned_of_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "sk-1")
    desk.ready(key_env="KEY")
    assert desk.errors() == [], "a server on this machine"
    models = {"big": {"url": "http://192.0.2.1:8", "key_env": "KEY"}}
    for tokens in (3, 4):
        completion = {"model": "desk", "max_tokens": tokens}
        models["desk"] = {"url": desk.server.url}
        desk.dispatch("config", {"config": {"models": models, "completion": completion}})
    (warning,) = desk.told("error")
    assert (warning["code"], warning["level"]) == ("key_exposed", "warn")
    assert "http://192.0.2.1:8" in warning["message"]


def test_a_changed_budget_keeps_the_connection(desk: Desk) -> None:
    desk.ready()
    desk.change(desk.server, max_tokens=3, min_confidence=0.1)
    desk.complete(1)
    assert desk.server.asked[-1][3]["n_predict"] == 3
    assert desk.server.paths().count("/props") == 1
    assert desk.states() == ["loading_model", "ready"]


def test_another_server_is_asked_from_then_on(desk: Desk) -> None:
    desk.ready()
    with ModelServer() as other:
        other.llama("pass")
        desk.change(other)
        assert desk.complete(1) == "pass"
        assert desk.states() == ["loading_model", "ready"] * 2
        assert not desk.errors()


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
def test_a_bad_message_is_an_error_and_no_end(
    desk: Desk, method: str, params: object, code: str
) -> None:
    desk.dispatch(method, params)
    assert desk.errors() == [code]
    desk.ready()


def test_a_bug_is_logged_with_its_trace_and_reported_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(desk.dispatch.handlers, "fim.cancel", lambda params: 1 / 0)
    desk.dispatch("fim.cancel", {"id": 1})
    assert desk.errors() == ["internal"]
    assert "ZeroDivisionError" in desk.told("log")[0]["message"]


def test_shutdown_stops_the_loop(desk: Desk) -> None:
    desk.dispatch("shutdown", {})
    assert desk.stopped == 1
    assert desk.dispatch.close()


def test_a_missing_model_is_reported_with_the_command_that_helps(desk: Desk) -> None:
    desk.dispatch("hello", hello())
    error = desk.wait("error")
    assert error["code"] == "model_missing"
    assert "models pull qwen2.5-coder-0.5b" in error["hint"]
    assert desk.states() == ["loading_model", "failed"]


def test_the_chat_server_pauses_until_the_end_of_the_last_completion(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, may_end = Models(), threading.Event()
    signals = list[bool]()
    monkeypatch.setattr("lcursor.host.dispatch.open_backend", models.open)
    monkeypatch.setattr(ServerFolder, "signal", lambda _, is_begin: signals.append(is_begin))
    desk.dispatch("hello", hello(model="m"))
    desk.wait("state", count=2)
    models.acts["complete"] = wait_for(may_end)
    for number in (1, 2):
        desk.dispatch("fim.request", request(number))
    assert signals == [True, True]
    may_end.set()
    desk.wait("fim.done", 2)
    assert signals == [True, True, False], "the end of the first one does not count"


def test_completions_elsewhere_do_not_pause_the_chat_server(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = list[bool]()
    monkeypatch.setattr(ServerFolder, "signal", lambda _, is_begin: signals.append(is_begin))
    desk.ready()
    desk.complete(1)
    assert True not in signals
