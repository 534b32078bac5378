"""The host's table of messages, without a Neovim and without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.fim import completer
from lcursor.host.dispatch import Dispatch
from tests.fakes.heard import Heard

HELLO = {"protocol": protocol.PROTOCOL, "version": "0.1.0", "config": {}}


class Slot:
    """Stands where the completer stands; notes what it is asked."""

    made: list[Slot]

    def __init__(self, config: object, emit: object, retriever: object) -> None:
        self.config, self.asked = config, list[tuple[str, Any]]()
        self.thresholds = {"": 0.4, "lua": 0.5}
        self.learned: list[object] = []
        Slot.made.append(self)

    def start(self) -> None:
        self.asked.append(("start", None))

    def request(self, params: Mapping[str, Any]) -> None:
        self.asked.append(("request", params["id"]))

    def more(self, number: int, typed: str) -> None:
        self.asked.append(("more", number))

    def learn(self, history: object) -> None:
        self.learned.append(history)

    def offer(self, params: Mapping[str, Any]) -> None:
        self.asked.append(("offer", params["name"]))

    def prompt(self) -> None:
        self.asked.append(("prompt", None))

    def cancel(self, number: int) -> None:
        self.asked.append(("cancel", number))

    def close(self) -> bool:
        self.asked.append(("close", None))
        return True


class Desk(Heard):
    """A dispatch and what it sent."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = 0
        self.dispatch = Dispatch(self._tell, self._stop)

    def _stop(self) -> None:
        self.stopped += 1

    def errors(self) -> list[str]:
        return [params["code"] for method, params in self.sent if method == "error"]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Desk]:
    Slot.made = []
    monkeypatch.setattr("lcursor.host.dispatch.Completer", Slot)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    desk = Desk()
    yield desk
    desk.dispatch.close()


def test_hello_is_answered_and_the_model_loaded(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    method, params = desk.sent[0]
    assert method == "ready"
    protocol.check(method, dict(params), protocol.TO_LUA)
    assert Slot.made[0].asked == [("start", None)]


def test_another_protocol_is_told_and_nothing_is_loaded(desk: Desk) -> None:
    desk.dispatch("hello", {**HELLO, "protocol": 999})
    assert [method for method, _ in desk.sent] == ["ready", "error"]
    assert desk.errors() == ["protocol_mismatch"]
    assert not Slot.made


def test_requests_reach_the_slot(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    fields = dict.fromkeys(protocol.fields(protocol.FimRequest), "")
    numbers = {"id": 7, "buf": 1, "tick": 1, "first_row": 0, "row": 0, "col": 0}
    desk.dispatch("fim.request", {**fields, **numbers, "single_line": False, "trigger": "auto"})
    desk.dispatch("fim.more", {"id": 7, "typed": "re"})
    desk.dispatch("fim.cancel", {"id": 7})
    assert Slot.made[0].asked[1:] == [("request", 7), ("more", 7), ("cancel", 7)]
    assert not desk.errors()


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
    "confidence": 0.6,
}


def test_outcomes_are_kept_told_and_learned_from(desk: Desk, tmp_path: Path) -> None:
    desk.dispatch("hello", HELLO)
    desk.dispatch("fim.outcome", OUTCOME)
    desk.dispatch("stats.request", [])
    said = dict(desk.wait("stats"))
    protocol.check("stats", said, protocol.TO_LUA)
    assert (said["total"]["shown"], said["rows"][0]["filetype"]) == (1, "lua")
    assert (said["rows"][0]["threshold"], said["total"]["threshold"]) == (0.5, 0.4)
    assert said["path"] == str(tmp_path / "lcursor/outcomes.sqlite3")
    assert Slot.made[0].learned[-1] == [("lua", 0.6, False)]
    desk.dispatch("stats.reset", [])
    assert desk.wait("stats", count=2)["total"]["shown"] == 0
    assert Slot.made[0].learned[-1] == []
    assert not desk.errors()


def test_what_was_learned_outlives_a_change_of_the_model(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    desk.dispatch("fim.outcome", OUTCOME)
    desk.dispatch("config", {"config": {"completion": {"model": "other"}}})
    desk.dispatch("stats.request", [])
    desk.wait("stats")
    assert Slot.made[1].learned[-1] == [("lua", 0.6, False)]


def test_an_outcome_that_nobody_knows_is_refused(desk: Desk) -> None:
    desk.dispatch("fim.outcome", {**OUTCOME, "outcome": "loved"})
    assert desk.errors() == ["message_invalid"]


def test_the_prompt_is_asked_of_the_slot(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    desk.dispatch("prompt.request", [])
    assert Slot.made[0].asked[-1] == ("prompt", None)


def test_pieces_of_files_reach_the_slot(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    chunk = {"path": "/r/a.py", "name": "a.py", "first_row": 0, "text": "x", "symbols": []}
    desk.dispatch("context.chunk", {**chunk, "kind": "yanked"})
    assert Slot.made[0].asked[1:] == [("offer", "a.py")]
    desk.dispatch("context.chunk", {**chunk, "kind": "stolen"})
    assert desk.errors() == ["message_invalid"]


def test_only_a_changed_setting_loads_anew(desk: Desk) -> None:
    desk.dispatch("hello", HELLO)
    desk.dispatch("config", {"config": {}})
    assert len(Slot.made) == 1
    desk.dispatch("config", {"config": {"completion": {"model": "other"}}})
    assert len(Slot.made) == 2
    assert Slot.made[0].asked[-1] == ("close", None)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("dance", {}, "message_invalid"),
        ("fim.request", {"id": 1}, "message_invalid"),
        ("fim.cancel", {"id": 1}, "message_invalid"),  # before hello
        ("hello", "text", "message_invalid"),
        ("hello", {**HELLO, "config": {"completion": 3}}, "config_invalid"),
        ("hello", {**HELLO, "config": {"completion": {"threads": "two"}}}, "config_invalid"),
    ],
)
def test_a_bad_message_is_an_error_and_no_end(
    desk: Desk, method: str, params: object, code: str
) -> None:
    desk.dispatch(method, params)
    assert desk.errors() == [code]
    desk.dispatch("hello", HELLO)
    assert Slot.made


def test_a_bug_is_logged_with_its_trace_and_told_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.dispatch("hello", HELLO)
    monkeypatch.setattr(Slot, "cancel", lambda self, number: 1 / 0)
    desk.dispatch("fim.cancel", {"id": 1})
    assert desk.errors() == ["internal"]
    logged = [params["message"] for method, params in desk.sent if method == "log"]
    assert "ZeroDivisionError" in logged[0]


def test_shutdown_stops_the_loop(desk: Desk) -> None:
    desk.dispatch("shutdown", [])
    assert desk.stopped == 1
    assert desk.dispatch.close()


def test_a_missing_model_is_told_with_the_command_that_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The real completer, up to the point where it needs a file."""
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    sent: list[tuple[str, Mapping[str, Any]]] = []
    slot = completer.Completer(CompletionConfig(), lambda *message: sent.append(message))
    slot._load()
    errors = [params for method, params in sent if method == "error"]
    assert [error["code"] for error in errors] == ["model_missing"]
    assert "models pull qwen2.5-coder-0.5b" in errors[0]["hint"]
    states = [params["state"] for method, params in sent if method == "state"]
    assert states == ["loading_model", "failed"]
