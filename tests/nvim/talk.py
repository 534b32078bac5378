"""A chat in a Neovim whose host is the fake one: says what the chat slot would say."""

from __future__ import annotations

from typing import Any

from lcursor.protocol import TO_LUA, check
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

ITEM: dict[str, Any] = {
    "key": "a",
    "kind": "file",
    "name": "a.py",
    "tokens": 120,
    "is_exact": True,
    "note": "",
    "is_left_out": False,
    "path": "/project/a.py",
    "first_row": 0,
}
DONE: dict[str, Any] = {
    "reason": "stop",
    "title": "",
    "call": "",
    "prompt_tokens": 2048,
    "cached_tokens": 1946,
    "answer_tokens": 40,
    "prompt_ms": 10.0,
    "answer_ms": 1000.0,
    "first_ms": 20.0,
    "context_tokens": 32768,
    "is_exact": True,
}


def message(number: int, text: str, **other: Any) -> dict[str, Any]:
    """Return a message of a chat: odd ones are the user's."""
    return {
        "number": number,
        "role": "user" if number % 2 else "assistant",
        "text": text,
        "reasoning": "",
        "branch": 1,
        "branches": 1,
        "is_partial": False,
        "model": "" if number % 2 else "qwen",
        "why": "",
        "items": [],
        "call": "",
        **other,
    }


class Talk:
    """One chat, from the host's side and from the keyboard."""

    def __init__(self, nvim: Pilot, host: FakeHost, key: str = "k1") -> None:
        self.nvim, self.host, self.key = nvim, host, key
        self._sent = len(host.messages("chat.send"))
        self._number = 0

    def open(
        self, command: str = "LCChat", messages: list[dict[str, Any]] | None = None, **other: Any
    ) -> Talk:
        """Open the chat with a command and let the host answer."""
        count = len(self.host.messages("chat.open"))
        self.nvim.command(command)
        self.host.wait(lambda: len(self.host.messages("chat.open")) > count)
        self.opened(self.host.messages("chat.open")[-1]["id"], messages, **other)
        self._number = len(messages or [])
        return self

    def opened(
        self, number: int, messages: list[dict[str, Any]] | None = None, **other: Any
    ) -> None:
        """Say what the chat is."""
        chat = {
            "id": number,
            "chat": self.key,
            "title": "",
            "root": self.nvim.lua("return vim.uv.cwd()"),
            "model": "qwen",
            "models": ["qwen", "big"],
            "messages": messages or [],
            "context_tokens": 32768,
            "used_tokens": 0,
        }
        self.say("chat.opened", {**chat, **other})
        self.nvim.settle()

    def say(self, method: str, params: dict[str, Any]) -> None:
        """Say a message that the wire knows."""
        self.host.send(method, check(method, params, TO_LUA))

    def heard(self) -> dict[str, Any]:
        """Wait for the next question."""
        self.host.wait(lambda: len(self.host.messages("chat.send")) > self._sent)
        self._sent += 1
        asked: dict[str, Any] = self.host.messages("chat.send")[self._sent - 1]
        return asked

    def begin(
        self, asked: dict[str, Any], items: list[dict[str, Any]] | None = None, **other: Any
    ) -> int:
        """Say that a turn begins; return its id."""
        number: int = asked["id"]
        self._number += 2
        started = {
            "question": self._number - 1,
            "answer": self._number,
            "items": items or [],
            "model": "qwen",
            "result": "",
        }
        self.say("chat.started", {"id": number, "chat": self.key, **started, **other})
        return number

    def ask(self, text: str, items: list[dict[str, Any]] | None = None) -> int:
        """Type a question at the end, send it, and let its turn begin; return its id."""
        self.nvim.press(f"GA{text}<Esc><CR>")
        return self.begin(self.heard(), items)

    def delta(self, number: int, text: str, reasoning: str = "") -> None:
        """Say more of an answer."""
        self.say("chat.delta", {"id": number, "text": text, "reasoning": reasoning})

    def progress(self, number: int, phase: str, **other: Any) -> None:
        """Say what a turn waits for."""
        none = {"detail": "", "done": 0, "total": 0, "cached": 0, "seconds_left": -1.0}
        self.say("chat.progress", {"id": number, "phase": phase, **none, **other})

    def done(self, number: int, **other: Any) -> None:
        """End a turn."""
        self.say("chat.done", {"id": number, "chat": self.key, **DONE, **other})
        self.nvim.settle()

    def fail(self, number: int, text: str, hint: str = "") -> None:
        """Say that something failed."""
        said = {"code": "server_unreachable", "message": text, "hint": hint, "level": "warn"}
        self.say("error", {"id": number, **said})

    def answer(self, text: str, reply: str) -> int:
        """Have a whole turn; return its id."""
        number = self.ask(text)
        self.delta(number, reply)
        self.done(number)
        return number

    def lines(self) -> list[str]:
        """Return the lines of the chat's buffer, wherever the cursor is."""
        lines: list[str] = self.nvim.lua(
            """
            local session = require("lcursor.chat").current()
            return vim.api.nvim_buf_get_lines(session.buf, 0, -1, false)
            """
        )
        return lines

    def wait_text(self, text: str) -> None:
        """Wait until the buffer holds a text."""
        self.nvim.wait_lua(
            """
            local session = require("lcursor.chat").current()
            local lines = vim.api.nvim_buf_get_lines(session.buf, 0, -1, false)
            return table.concat(lines, "\\n"):find(..., 1, true) ~= nil
            """,
            text,
        )
