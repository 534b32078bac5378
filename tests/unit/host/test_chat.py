"""The chat's messages on their way through the host: in order, at once, and with the index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import ChatConfig, Config, PrivacyConfig
from lcursor.host.indexing import Indexing
from lcursor.host.services import THREAD, Services
from tests.fakes.chat_server import Answer, ChatServer, Hang, say
from tests.fakes.heard import Heard, config_of


class Index:
    """Stands where the index's part of the host stands."""

    def __init__(self) -> None:
        self.rests = 0
        self.worker: Any = None

    def typing(self) -> None:
        self.rests += 1

    def client_of(self, root: Path) -> Any:
        return self.worker


class Service(Heard):
    """The services, and what they sent."""

    def __init__(self, config: ChatConfig) -> None:
        self.index = Index()
        super().__init__()
        self.services = Services(self._tell, self.index)  # type: ignore[arg-type]
        self.configure(config)
        self.handlers = self.services.handlers()

    def configure(self, config: ChatConfig, secrets: tuple[str, ...] = ()) -> None:
        self.services.configure(Config(privacy=PrivacyConfig(secrets), chat=config))

    def open(self, number: int, path: Path) -> str:
        self.handlers["chat.open"]({"id": number, "chat": "", "path": str(path)})
        return str(self.wait("chat.opened", number)["chat"])

    def send(self, number: int, chat: str, text: str = "Hello") -> None:
        self.handlers["chat.send"](
            {
                "id": number, "chat": chat, "after": 0, "text": text, "path": "",
                "attachments": [], "dropped": [], "model": "", "again": 0, "call": "", "choice": "",
            }
        )  # fmt: skip


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    (tmp_path / "project/.git").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as fake:
        yield fake


def test_every_message_of_the_services_has_a_handler(server: ChatServer) -> None:
    names = set(Service(config_of(server)).handlers)
    services = protocol.chat, protocol.edit, protocol.agent, protocol.mcp
    assert names == {name for each in services for name in each.TO_PYTHON}


def test_a_question_goes_through_the_host(data: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    chat = service.open(1, data)
    service.send(2, chat)
    assert service.wait("chat.done", 2)["reason"] == "stop"
    assert service.index.rests >= 1  # the index gave way
    service.services.close()
    assert [path.stem for path in (data.parent / "data/chats").glob("*/*.jsonl")] == [chat]


def test_a_handler_does_not_wait_for_the_slot(data: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    may_go_on, has_begun = threading.Event(), threading.Event()

    def block() -> None:
        has_begun.set()
        assert may_go_on.wait(20)

    service.services._executor.submit(block)
    assert has_begun.wait(20)
    service.handlers["chat.open"]({"id": 1, "chat": "", "path": str(data)})
    service.handlers["chat.stop"]({"id": 7})
    assert not service.sent  # nothing was done on this thread
    may_go_on.set()
    service.wait("chat.opened", 1)
    service.services.close()


def test_the_index_is_asked_where_it_runs(data: Path, server: ChatServer) -> None:
    hit = {
        "path": "deep/clock.py", "first_row": 3, "end_row": 5, "scope": "", "kind": "",
        "language": "python", "text": "def tick():\n    pass\n", "score": 1.0,
        "parts": {"lexical": 1.0}, "is_stale": False,
    }  # fmt: skip

    class Worker:
        def call(self, do: str, **params: Any) -> dict[str, Any]:
            return {"used": [hit], "left_out": [], "tokens": 9} if do == "retrieve" else {}

    service = Service(config_of(server))
    service.index.worker = Worker()
    chat = service.open(1, data)
    service.send(2, chat, "Where does it tick? @codebase")
    names = [each["name"] for each in service.wait("chat.started", 2)["items"]]
    assert any("deep/clock.py" in name for name in names)
    service.wait("chat.done", 2)
    service.services.close()


def test_other_settings_stop_running_answers_and_apply_to_the_next(data: Path) -> None:
    with ChatServer([Answer([*say("So", finish=None, is_done=False).parts, Hang()])]) as slow:
        service = Service(config_of(slow))
        chat = service.open(1, data)
        service.send(2, chat)
        service.wait("chat.delta", 2)
        service.configure(config_of(slow))  # the same: nothing happens
        service.open(3, data)
        assert ("chat.done", 2) not in [(name, p.get("id")) for name, p in service.sent]
        service.configure(replace(config_of(slow), max_tokens=5))
        assert service.wait("chat.done", 2)["reason"] == "stopped"
        service.handlers["chat.open"]({"id": 4, "chat": chat, "path": str(data)})
        assert service.wait("chat.opened", 4)["messages"][1]["text"] == "So"
        service.services.close()


def test_closing_stores_the_last_question(data: Path) -> None:
    with ChatServer([Answer([Hang()])]) as slow:
        service = Service(config_of(slow))
        chat = service.open(1, data)
        service.send(2, chat, "Is this kept?")
        service.services.close()  # the answer never ends, so nobody waits for its end
        (path,) = (data.parent / "data/chats").glob("*/*.jsonl")
        assert "Is this kept?" in path.read_text()
        assert not list(path.parent.glob("*.lock"))


def test_an_unused_chat_costs_no_thread(server: ChatServer) -> None:
    before = set(threading.enumerate())
    service = Service(config_of(server))
    service.configure(ChatConfig(), ("*.x",))
    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert THREAD not in names
    service.services.close()


def test_the_index_notifies_its_workers_only_while_they_run(tmp_path: Path) -> None:
    assert Indexing(lambda method, params: None).client_of(tmp_path) is None
