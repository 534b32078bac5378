"""A chat slot at work: what is sent to it, and what it tells."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from lcursor import protocol
from lcursor.chat.service import ChatService
from lcursor.config import ChatConfig
from tests.fakes.heard import Heard, Told


class Desk(Heard):
    """A slot in a project of the test, and all that it told."""

    def __init__(self, folder: Path, config: ChatConfig, **more: Any) -> None:
        super().__init__()
        self.root = folder / "project"
        self.root.mkdir(exist_ok=True)
        (self.root / ".git").mkdir(exist_ok=True)
        self.chat = ""
        self._number = 0
        more.setdefault("folder", folder / "chats")
        more.setdefault("server", folder / "server")
        self.slot = ChatService(config, self._tell, **more)

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None
    ) -> None:
        self.slot.close()

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
    fields |= {"call": "", "choice": ""}
    return {"after": after, "text": text, **fields, **more}


def attachment(kind: str, name: str, text: str, **more: Any) -> dict[str, Any]:
    """Return what an editor attaches."""
    fields = {"path": "", "first_row": 0, "is_offered": False}
    return {"kind": kind, "name": name, "text": text, **fields, **more}
