"""The host's table of messages, without a Neovim and without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.fim import completer
from lcursor.host.dispatch import Dispatch

HELLO = {"protocol": protocol.PROTOCOL, "version": "0.1.0", "config": {}}


class Slot:
    """Stands where the completer stands; notes what it is asked."""

    made: list[Slot]

    def __init__(self, config: object, emit: object) -> None:
        self.config, self.asked = config, list[tuple[str, Any]]()
        Slot.made.append(self)

    def start(self) -> None:
        self.asked.append(("start", None))

    def request(self, params: Mapping[str, Any]) -> None:
        self.asked.append(("request", params["id"]))

    def more(self, number: int) -> None:
        self.asked.append(("more", number))

    def cancel(self, number: int) -> None:
        self.asked.append(("cancel", number))

    def close(self) -> bool:
        self.asked.append(("close", None))
        return True


class Desk:
    """A dispatch and what it sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.stopped = 0
        self.dispatch = Dispatch(lambda *message: self.sent.append(message), self._stop)

    def _stop(self) -> None:
        self.stopped += 1

    def errors(self) -> list[str]:
        return [params["code"] for method, params in self.sent if method == "error"]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    Slot.made = []
    monkeypatch.setattr("lcursor.host.dispatch.Completer", Slot)
    return Desk()


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
    desk.dispatch("fim.more", {"id": 7})
    desk.dispatch("fim.cancel", {"id": 7})
    assert Slot.made[0].asked[1:] == [("request", 7), ("more", 7), ("cancel", 7)]
    assert not desk.errors()


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
