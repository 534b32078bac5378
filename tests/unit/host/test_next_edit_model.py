"""Next edits of a model: one question, one answer, also while newer requests come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.config_table import from_table
from lcursor.host.next_edits import NextEdits
from lcursor.next_edit import window
from lcursor.next_edit.records import Edit
from lcursor.protocol import TO_LUA, check
from lcursor.protocol.next_edit import NextEdit, NextEditFile, NextEditPredict
from tests.fakes.loopback import sse
from tests.fakes.model_server import ModelServer
from tests.waiting import wait_for

OLD = "def area(width):\n    return w * w"
NEW = "\ndef area(width):\n    return width * width\n"
CHANGED = [["    return width * width"]]
Start = Callable[..., NextEdits]


class Receiver:
    """Records the messages of a service."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, method: str, params: Mapping[str, Any]) -> None:
        self.messages.append((method, check(method, params, TO_LUA)))

    def answers(self) -> list[tuple[int, list[list[str]]]]:
        """Return the ids and the new lines of all answers."""
        return [
            (params["id"], [one["new"] for one in params["proposals"]])
            for method, params in self.messages
            if method == "next_edit.predicted"
        ]

    def errors(self) -> list[str]:
        """Return the codes of all errors."""
        return [params["code"] for method, params in self.messages if method == "error"]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as it:
        yield it


@pytest.fixture
def receive() -> Receiver:
    return Receiver()


@pytest.fixture
def start(server: ModelServer, receive: Receiver) -> Iterator[Start]:
    services: list[NextEdits] = []

    def begin(**model: Any) -> NextEdits:
        table = {"models": {"desk": {"url": server.url, **model}}, "next_edit": {"model": "desk"}}
        service = NextEdits(receive)
        service.configure(from_table(table))
        services.append(service)
        return service

    yield begin
    for service in services:
        service.close()


def request(tmp_path: Path, number: int, text: str = OLD, row: int = 0) -> NextEditPredict:
    path = str(tmp_path / "a.txt")
    edit: NextEdit = {
        "path": path,
        "row": 0,
        "old": ["def area(w):"],
        "new": ["def area(width):"],
        "is_accepted": False,
    }
    files: list[NextEditFile] = [{"path": path, "text": text}]
    return {
        "id": number,
        "files": files,
        "is_wide": False,
        "edits": [edit],
        "row": row,
        "column": 14,
    }


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    return [body for method, _, _, body in server.asked if method == "POST"]


def test_the_window_is_sent_and_the_answer_follows(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama(NEW[:30], NEW[30:], model="sweep-next-edit-0.5b.q8_0.gguf")
    start().predict(request(tmp_path, 1))
    wait_for(lambda: len(receive.answers()) == 2)
    assert receive.answers() == [(1, []), (1, CHANGED)]
    (proposal,) = receive.messages[1][1]["proposals"]
    assert (proposal["kind"], proposal["path"]) == ("model", str(tmp_path / "a.txt"))
    assert (proposal["row"], proposal["cause"]) == (1, "suggested by desk")
    (body,) = bodies(server)
    assert body["prompt"] == (
        "<|file_sep|>original/a.txt\ndef area(w):\n    return w * w\n"
        "<|file_sep|>current/a.txt\ndef area(width):\n    return w * w\n"
        "<|file_sep|>updated/a.txt"
    )
    assert body["stop"] == ["<|file_sep|>", "<|endoftext|>"]


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_an_ollama_or_openai_server_predicts_edits(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path, kind: str
) -> None:
    speak = {"ollama": server.ollama, "openai": server.openai}[kind]
    speak(NEW, models=("llama3:8b", "hf.co/sweepai/sweep-next-edit-1.5B"))
    start().predict(request(tmp_path, 1))
    wait_for(lambda: len(receive.answers()) == 2)
    assert receive.answers()[1] == (1, CHANGED)
    assert bodies(server)[0]["model"] == "hf.co/sweepai/sweep-next-edit-1.5B"


def test_the_same_question_is_asked_once(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama(NEW)
    service = start(family="sweep")
    service.predict(request(tmp_path, 1))
    wait_for(lambda: len(receive.answers()) == 2)
    service.predict(request(tmp_path, 2))
    wait_for(lambda: len(receive.answers()) == 4)
    assert receive.answers()[2:] == [(2, []), (2, CHANGED)]
    assert len(bodies(server)) == 1


def test_a_running_question_answers_the_newer_request(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama()
    may_end = threading.Event()

    def body() -> Iterator[bytes]:
        yield sse({"content": NEW, "stop": False})
        may_end.wait(10)
        yield sse({"content": "", "stop": True, "stop_type": "eos"})

    server.routes["/completion"] = (200, "text/event-stream", body)
    service = start(family="sweep")
    service.predict(request(tmp_path, 1))
    wait_for(lambda: len(bodies(server)) == 1)
    service.predict(request(tmp_path, 2))
    wait_for(lambda: len(receive.answers()) == 2)
    may_end.set()
    wait_for(lambda: len(receive.answers()) == 3)
    assert receive.answers() == [(1, []), (2, []), (2, CHANGED)]


def test_a_newer_question_stops_an_older_one(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama()
    text = sse({"content": "\ndef", "stop": False})
    server.routes["/completion"] = (200, "text/event-stream", server.drip(text))
    service = start(family="sweep")
    service.predict(request(tmp_path, 1))
    wait_for(lambda: len(bodies(server)) == 1)
    server.llama(NEW)
    service.predict(request(tmp_path, 2, row=1))
    wait_for(lambda: len(receive.answers()) == 3)
    assert receive.answers() == [(1, []), (2, []), (2, CHANGED)]
    wait_for(lambda: len(server.gone_s) == 1)
    assert not receive.errors()


def test_a_truncated_answer_is_ignored(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama()
    end = {"content": "", "stop": True, "stop_type": "limit"}
    body = sse({"content": NEW, "stop": False}, end)
    server.routes["/completion"] = (200, "text/event-stream", body)
    service = start(family="sweep")
    service.predict(request(tmp_path, 1))
    wait_for(lambda: len(bodies(server)) == 1)
    service.close()
    assert receive.answers() == [(1, [])]


FAR = "\n".join([OLD, *["    pass"] * 40, "area(w)", *["    pass"] * 40, "# w"])


@pytest.mark.parametrize(
    ("delay_s", "expected"), [(0.0, [(1, []), (1, [["area(width)"]])]), (0.6, [(1, [])])]
)
def test_windows_elsewhere_are_asked_about_where_answers_are_quick(
    server: ModelServer,
    start: Start,
    receive: Receiver,
    tmp_path: Path,
    delay_s: float,
    expected: list[Any],
) -> None:
    server.llama()

    def body() -> Iterator[bytes]:
        time.sleep(delay_s)
        now = bodies(server)[-1]["prompt"].rpartition("<|file_sep|>current/a.txt\n")[2]
        text = now.partition("<|file_sep|>")[0].replace("area(w)", "area(width)")
        yield sse({"content": text, "stop": False})
        yield sse({"content": "", "stop": True, "stop_type": "eos"})

    server.routes["/completion"] = (200, "text/event-stream", body)
    start(family="sweep").predict(request(tmp_path, 1, FAR))
    wait_for(lambda: len(receive.answers()) == len(expected))
    if delay_s:
        time.sleep(2 * delay_s)
    assert receive.answers() == expected
    assert len(bodies(server)) == len(expected)


def test_nothing_is_asked_where_edits_follow_anyway(
    server: ModelServer, start: Start, receive: Receiver, tmp_path: Path
) -> None:
    server.llama(NEW)
    params = request(tmp_path, 1, "def area(deadline):\n    return timeout")
    path = str(tmp_path / "a.py")
    params["files"][0]["path"] = params["edits"][0]["path"] = path
    params["edits"][0]["old"] = ["def area(timeout):"]
    params["edits"][0]["new"] = ["def area(deadline):"]
    service = start(family="sweep")
    service.predict(params)
    wait_for(lambda: receive.answers())
    service.close()
    assert receive.answers() == [(1, [["    return deadline"]])]
    assert not server.asked


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ({}, "config_invalid"),  # a completion model
        ({"family": "qwen2.5-coder"}, "config_invalid"),
        ({"url": "http://127.0.0.1:9"}, "server_unreachable"),
    ],
)
def test_a_failure_is_reported_once(
    server: ModelServer,
    start: Start,
    receive: Receiver,
    tmp_path: Path,
    model: dict[str, str],
    code: str,
) -> None:
    server.llama(NEW)
    service = start(**model)
    for number in (1, 2, 3):
        service.predict(request(tmp_path, number, row=number % 2))
        wait_for(lambda number=number: len(receive.answers()) == number)  # type: ignore[misc]
    wait_for(receive.errors)
    service.close()
    assert receive.errors() == [code]


def test_a_model_that_was_not_downloaded(
    receive: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    service = NextEdits(receive)
    service.configure(from_table({"next_edit": {"model": "sweep-next-edit-0.5b"}}))
    service.predict(request(tmp_path, 1))
    wait_for(receive.errors)
    service.close()
    (error,) = [params for method, params in receive.messages if method == "error"]
    assert error["code"] == "model_missing"
    assert "models pull sweep-next-edit-0.5b" in error["hint"]


def test_windows_elsewhere_have_a_removed_word() -> None:
    lines = ["x"] * 100
    for row in (5, 41, 49, 60, 62, 90):
        lines[row] = "call(w)"
    lines[95] = "width"  # the new word
    edit = Edit("a.py", 45, ("def area(w):",), ("def area(width):",))
    assert window.other_rows(tuple(lines), edit, 40, 50) == [60, 5, 90]
