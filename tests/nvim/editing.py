"""Edits in a Neovim whose host is the fake one: says what the edit slot would say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcursor.changes.records import digest
from lcursor.protocol import TO_LUA, check
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Params = dict[str, Any]
DONE: Params = {
    "reason": "proposed",
    "message": "",
    "prompt_tokens": 200,
    "cached_tokens": 0,
    "answer_tokens": 40,
    "passes": 20,
    "seconds": 1.5,
    "attempts": 1,
}


def change(first: int, old: Sequence[str], new: Sequence[str]) -> Params:
    """Return a change of lines."""
    return {"first_row": first, "last_row": first + len(old), "old": list(old), "new": list(new)}


def file(path: Path, changes: Sequence[Params], **other: Any) -> Params:
    """Return what a turn does to a file as it is on disk."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = {
        "path": str(path),
        "name": path.name,
        "kind": "edit",
        "to": "",
        "base": digest(lines) if path.exists() else "",
        "tick": -1,
        "changes": list(changes),
        "checks": [],
        "is_outside": False,
        "is_guarded": False,
        "unneeded": [],
    }
    return {**found, **other}


class Desk:
    """What is asked of a host, and what it answers."""

    def __init__(self, nvim: Pilot, host: FakeHost) -> None:
        self.nvim, self.host = nvim, host
        self.project = nvim.home / "project"
        self._turns = 0

    def say(self, method: str, params: Params) -> None:
        """Say a message that the wire knows."""
        self.host.send(method, check(method, params, TO_LUA))

    def heard(self, method: str, count: int = 1) -> Params:
        """Wait until so many messages of a name have come and return the last of them."""
        return reach.asked(self.host, method, count)

    def ask(self, command: str = "LCEdit do it", count: int = 1) -> Params:
        """Ask with a command and return what was asked."""
        self.nvim.command(command)
        return self.heard("edit.ask", count)

    def started(self, asked: Params, first: int, last: int, **other: Any) -> None:
        """Say which region is written anew."""
        said = {
            "id": asked["id"],
            "path": asked["path"],
            "first_row": first,
            "last_row": last,
            "what": "function alpha",
            "attempt": 1,
            "tick": asked.get("tick", -1),
        }
        self.say("edit.started", {**said, **other})
        self.nvim.settle()

    def progress(self, number: int, phase: str, **other: Any) -> None:
        """Say what an edit waits for."""
        none = {"detail": "", "done": 0, "total": 0, "seconds_left": -1.0, "attempt": 1}
        self.say("edit.progress", {"id": number, "phase": phase, **none, **other})
        self.nvim.settle()

    def delta(self, number: int, lines: Sequence[str], attempt: int = 1) -> None:
        """Say more of a region's lines."""
        self.say("edit.delta", {"id": number, "attempt": attempt, "lines": list(lines)})
        self.nvim.settle()

    def propose(self, number: int, files: Sequence[Params], **other: Any) -> str:
        """Propose changes; return the turn's key."""
        self._turns += 1
        said = {
            "id": number,
            "turn": f"t{self._turns}",
            "title": "do it",
            "alternative": 1,
            "files": list(files),
            "note": "",
            "attempts": 1,
            "chat": "",
        }
        said.update(other)
        self.say("edit.proposed", said)
        self.nvim.settle()
        return str(said["turn"])

    def done(self, number: int, **other: Any) -> None:
        """End an edit."""
        self.say("edit.done", {"id": number, **DONE, **other})
        self.nvim.settle()

    def fail(self, number: int, message: str, hint: str = "") -> None:
        """Say that something failed."""
        said = {"code": "server_unreachable", "message": message, "hint": hint, "level": "warn"}
        self.say("error", {"id": number, **said})
        self.nvim.settle()

    def edited(self, asked: Params, changes: Sequence[Params], **other: Any) -> str:
        """Have an edit of the buffer proposed and ended; return the turn's key."""
        found = file(
            Path(asked["path"]), changes, base=digest(asked["text"].split("\n")), tick=asked["tick"]
        )
        key = self.propose(asked["id"], [found], **other)
        self.done(asked["id"])
        return key

    def turns(self, rows: Sequence[Params], undo: str = "", redo: str = "", count: int = 1) -> None:
        """Answer the question for the turns."""
        asked = self.heard("edit.turns", count)
        said = {"id": asked["id"], "turns": list(rows), "undo": undo, "redo": redo}
        self.say("edit.turned", said)
        self.nvim.settle()

    def lines(self) -> list[str]:
        """Return the lines of the current buffer."""
        found: list[str] = self.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        return found

    def running(self) -> int:
        """Return how many edits run."""
        count: int = self.nvim.lua("return #require('lcursor.edit').running()")
        return count

    def drawn(self, space: str = "running") -> str:
        """Return all virtual text of one of our namespaces in the current buffer."""
        text: str = self.nvim.lua(
            """
            local space = vim.api.nvim_create_namespace("lcursor.edit." .. ...)
            local all = {}
            local marks = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
            for _, mark in ipairs(marks) do
              local lines = { mark[4].virt_text or {} }
              vim.list_extend(lines, mark[4].virt_lines or {})
              for _, line in ipairs(lines) do
                local cells = vim.tbl_map(function(cell) return cell[1] end, line)
                table.insert(all, table.concat(cells))
              end
            end
            return table.concat(all, "\\n")
            """,
            space,
        )
        return text


def row(turn: str, title: str = "do it", **other: Any) -> Params:
    """Return a line of the list of turns."""
    said = {"turn": turn, "title": title, "state": "done", "at_s": 0.0, "paths": [], "open": 0}
    return {**said, **other}
