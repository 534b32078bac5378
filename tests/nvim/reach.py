"""Helpers for tests: messages to the user, and a chat that is open, with answers to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Params = dict[str, Any]

NOTES = """
_G.notes = {}
vim.notify = function(text, level) table.insert(_G.notes, { text, level }) end
"""


def notes(nvim: Pilot) -> list[list[object]]:
    """Return the messages to the user: [text, level]."""
    found: list[list[object]] = nvim.lua("return _G.notes")
    return found


def told(nvim: Pilot) -> list[str]:
    """Return the texts of the messages to the user."""
    nvim.settle()
    texts: list[str] = nvim.lua("return vim.tbl_map(function(n) return n[1] end, _G.notes or {})")
    return texts


def asked(host: FakeHost, method: str, count: int = 1) -> Params:
    """Wait until so many messages of a name have come and return the last of them."""
    host.wait(lambda: len(host.messages(method)) >= count)
    return host.messages(method)[count - 1]


def item(kind: str, name: str = "", tokens: int = 10, **other: Any) -> Params:
    """Return an item of the preview of the context."""
    line = {
        "key": f"{kind}:{name}" if name else kind,
        "kind": kind,
        "name": name or kind,
        "tokens": tokens,
        "is_exact": True,
        "note": "",
        "is_left_out": False,
        "path": "",
        "first_row": 0,
    }
    return {**line, **other}


def message(number: int, role: str, text: str, items: Sequence[Params] = ()) -> Params:
    """Return a message of a chat."""
    return {
        "number": number,
        "role": role,
        "text": text,
        "reasoning": "",
        "branch": 1,
        "branches": 1,
        "is_partial": False,
        "model": "small" if role == "assistant" else "",
        "why": "",
        "items": list(items),
        "call": "",
    }


def opened(nvim: Pilot, number: int, messages: Sequence[Params] = (), **other: Any) -> Params:
    """Return what the host says of a chat."""
    answer = {
        "id": number,
        "chat": "key1",
        "title": "How it works" if messages else "",
        "root": str(nvim.home / "project"),
        "model": "small",
        "models": ["small", "large"],
        "messages": list(messages),
        "context_tokens": 8192,
        "used_tokens": 0,
    }
    return {**answer, **other}


def chat(nvim: Pilot, host: FakeHost, messages: Sequence[Params] = (), command: str = "") -> None:
    """Open a chat as the host has it; the cursor is in its draft."""
    nvim.command(command or "LCChat")
    question = asked(host, "chat.open")
    host.send("chat.opened", opened(nvim, question["id"], messages))
    nvim.settle()


def draft(nvim: Pilot, text: str) -> None:
    """Write a draft, as if it had been typed."""
    nvim.lua(
        """local chat, entries = require("lcursor.chat"), require("lcursor.conversation.entries")
        entries.set_draft(chat.current(), ...)""",
        text,
    )
    nvim.command("normal! G$")


def sheet(nvim: Pilot, name: str) -> list[str]:
    """Return the lines of a sheet; none where it is not open."""
    lines: list[str] = nvim.lua(
        """
        local buf = vim.fn.bufnr("^lcursor://" .. ... .. "$")
        return buf > 0 and vim.fn.bufwinid(buf) > 0
          and vim.api.nvim_buf_get_lines(buf, 0, -1, false) or {}
        """,
        name,
    )
    return lines


def winbar(nvim: Pilot) -> str:
    """Return the winbar of the current window."""
    bar: str = nvim.lua("return vim.wo.winbar")
    return bar.replace("%<", "").replace("%%", "%")
