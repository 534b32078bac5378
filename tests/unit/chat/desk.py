"""A chat slot at work: what is sent to it, and what it tells."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from lcursor import protocol
from lcursor.chat.slot import ChatSlot
from lcursor.config import ChatConfig, ModelConfig
from tests.fakes.chat_server import ChatServer

Told = Mapping[str, Any]
WAIT_S = 20.0


def config_of(*servers: ChatServer, **more: Any) -> ChatConfig:
    """Return settings by which one talks to servers of the test, `fake` the first of them."""
    names = ["fake", *(f"fake{number}" for number in range(2, len(servers) + 1))]
    models = tuple(
        ModelConfig(name, server.url) for name, server in zip(names, servers, strict=True)
    )
    return replace(ChatConfig(model="fake", models=models, server="off", rules=False), **more)


class Desk:
    """A slot in a project of the test, and all that it told."""

    def __init__(self, folder: Path, config: ChatConfig, **more: Any) -> None:
        self.root = folder / "project"
        self.root.mkdir(exist_ok=True)
        (self.root / ".git").mkdir(exist_ok=True)
        self.sent: list[tuple[float, str, Told]] = []
        self.chat = ""
        self._number = 0
        self._changed = threading.Condition()
        more.setdefault("folder", folder / "chats")
        more.setdefault("server", folder / "server")
        self.slot = ChatSlot(config, self._tell, **more)

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None
    ) -> None:
        self.slot.close()

    def _tell(self, method: str, params: Told) -> None:
        protocol.check(method, params, protocol.TO_LUA)
        with self._changed:
            self.sent.append((time.monotonic(), method, params))
            self._changed.notify_all()

    def do(self, method: str, **params: Any) -> int:
        """Send a message; return its id."""
        self._number += 1
        whole = {"id": self._number, **params}
        if "chat" in protocol.TO_PYTHON[method].__annotations__:
            whole.setdefault("chat", self.chat)
        self.slot.handlers()[method](protocol.check(method, whole))
        return self._number

    def ask(self, text: str, after: int = 0, **more: Any) -> int:
        """Send a question; return its id."""
        return self.do("chat.send", **question(text, after, **more))

    def told(self, method: str, number: int | None = None) -> list[Told]:
        """Return what was told by a name, about one request or all."""
        with self._changed:
            return [
                params
                for _, name, params in self.sent
                if name == method and number in (None, params["id"])
            ]

    def wait(self, method: str, number: int) -> Told:
        """Wait for what is told about a request; return the last of it."""
        with self._changed:
            is_there = self._changed.wait_for(
                lambda: any(
                    name == method and params["id"] == number for _, name, params in self.sent
                ),
                WAIT_S,
            )
            assert is_there, [each[1:] for each in self.sent[-12:]]
        return self.told(method, number)[-1]

    def open(self, chat: str = "") -> Told:
        """Open a chat."""
        path = str(self.root / "a.py")
        found = self.wait("chat.opened", self.do("chat.open", chat=chat, path=path))
        self.chat = found["chat"]
        return found

    def shown(self) -> list[tuple[str, str]]:
        """Return the messages of the chat as it is shown."""
        return [(each["role"], each["text"]) for each in self.open(self.chat)["messages"]]

    def turn(self, text: str, after: int = 0, **more: Any) -> Told:
        """Ask, and wait for the end; return that, with the numbers of the messages."""
        number = self.ask(text, after, **more)
        done = self.wait("chat.done", number)
        started = (self.told("chat.started", number) or [{}])[-1]
        return {**started, **done}

    def said(self, number: int) -> str:
        """Return what was streamed for a request."""
        return "".join(each["text"] for each in self.told("chat.delta", number))

    def phases(self, number: int) -> list[str]:
        """Return what a turn waited for, one after the other."""
        return list(dict.fromkeys(each["phase"] for each in self.told("chat.progress", number)))

    def files(self) -> list[Path]:
        """Return the files of all chats."""
        return sorted(self.root.parent.glob("chats/*/*"))


def question(text: str, after: int = 0, **more: Any) -> dict[str, Any]:
    """Return the fields of a question."""
    fields = {"path": "", "attachments": [], "dropped": [], "model": "", "again": 0}
    return {"after": after, "text": text, **fields, **more}


def attachment(kind: str, name: str, text: str, **more: Any) -> dict[str, Any]:
    """Return what an editor attaches."""
    fields = {"path": "", "first_row": 0, "is_offered": False}
    return {"kind": kind, "name": name, "text": text, **fields, **more}
