"""A run of an agent in a Neovim whose host is the fake one: says what the service would say."""

from __future__ import annotations

from typing import Any

from lcursor.protocol import TO_LUA, check
from tests.fakes.control import FakeHost
from tests.nvim import edits, reach
from tests.nvim.pilot import Pilot

Params = dict[str, Any]
BUFFER = "local run = require('lcursor.agent').current() "


class Agent:
    """One run, from the host's side and from the keyboard."""

    def __init__(self, nvim: Pilot, host: FakeHost, key: str = "r1") -> None:
        self.nvim, self.host, self.key = nvim, host, key
        self.id = 0

    def start(self, command: str = "LCursor agent fix the bug", **other: Any) -> Params:
        """Start a run with a command; return what was asked."""
        count = len(self.host.messages("agent.start"))
        self.nvim.command(command)
        return self.started(self.heard("agent.start", count + 1), **other)

    def started(self, asked: Params, **other: Any) -> Params:
        """Say that a run begins."""
        self.id = asked["id"]
        said = {
            "id": self.id,
            "run": self.key,
            "task": asked.get("task", "fix the bug"),
            "policy": "auto",
            "model": "qwen",
            "dialect": "native",
            "sandbox": "bubblewrap",
            "note": "",
            "group": asked.get("group", ""),
            "attempt": asked.get("attempt", 0),
        }
        self.say("agent.started", {**said, **other})
        self.nvim.settle()
        return asked

    def heard(self, method: str, count: int = 1) -> Params:
        """Wait until so many messages of a name have come and return the last of them."""
        return reach.asked(self.host, method, count)

    def say(self, method: str, params: Params) -> None:
        """Say a message that the wire knows."""
        self.host.send(method, check(method, params, TO_LUA))

    def step(self, number: int, kind: str, target: str, text: str = "", **other: Any) -> None:
        """Say what a step is."""
        said = {
            "id": self.id,
            "number": number,
            "kind": kind,
            "target": target,
            "state": "done",
            "result": "",
            "text": text,
            "seconds": 0.0,
        }
        self.say("agent.step", {**said, **other})
        self.nvim.settle()

    def delta(self, text: str, *, is_new: bool = False) -> None:
        """Say more of what the model writes."""
        self.say("agent.delta", {"id": self.id, "text": text, "is_new": is_new})

    def status(self, state: str = "running", **other: Any) -> None:
        """Say what is left of the budgets."""
        said = {
            "id": self.id,
            "state": state,
            "steps": 2,
            "max_steps": 40,
            "used_tokens": 12288,
            "context_tokens": 32768,
            "cached_share": 0.97,
            "seconds": 12.0,
            "max_seconds": 1800.0,
            "added": 0,
            "removed": 0,
        }
        self.say("agent.status", {**said, **other})
        self.nvim.settle()

    def asks(
        self, number: int, command: str, why: str = "opens the network", *, is_bound: bool = False
    ) -> None:
        """Ask for approval of a step."""
        ask = {
            "id": self.id,
            "ask": number,
            "number": number,
            "command": command,
            "why": why,
            "is_bound": is_bound,
        }
        self.step(number, "command", command.split("\n")[0], state="waiting")
        self.status("waiting", steps=number)
        self.say("agent.asks", ask)
        self.nvim.settle()

    def planned(self, text: str, *, is_question: bool = False) -> None:
        """Show a plan."""
        self.say("agent.planned", {"id": self.id, "text": text, "is_question": is_question})
        self.nvim.settle()

    def done(self, state: str = "done", message: str = "I fixed it.", **other: Any) -> None:
        """End the run."""
        said = {
            "id": self.id,
            "run": self.key,
            "state": state,
            "message": message,
            "is_checked": False,
            "turn": "",
            "paths": [],
            "root": str(self.nvim.home / "project"),
        }
        self.say("agent.done", {**said, **other})
        self.nvim.settle()

    def changed(self, *files: Params) -> Params:
        """Answer the question for the changes of a run that ended; return the question."""
        asked = self.heard("edit.resume")
        self.say("edit.proposed", edits.proposed(files, asked["turn"], id=asked["id"]))
        self.nvim.settle()
        return asked

    def fail(self, message: str, code: str = "server_unreachable", hint: str = "") -> None:
        """Say that something failed."""
        said = {"code": code, "message": message, "hint": hint, "level": "warn"}
        self.say("error", {"id": self.id, **said})
        self.nvim.settle()

    def lines(self) -> list[str]:
        """Return the lines of the run's buffer, wherever the cursor is."""
        lines: list[str] = self.nvim.lua(
            BUFFER + "return vim.api.nvim_buf_get_lines(run.buf, 0, -1, false)"
        )
        return lines

    def wait_text(self, text: str) -> None:
        """Wait until the buffer holds a text."""
        self.nvim.wait_lua(
            BUFFER
            + """
            local lines = vim.api.nvim_buf_get_lines(run.buf, 0, -1, false)
            return table.concat(lines, "\\n"):find(..., 1, true) ~= nil
            """,
            text,
        )

    def winbar(self) -> str:
        """Return the text of the winbar."""
        text: str = self.nvim.lua(
            BUFFER
            + """
            local bar = vim.wo[vim.fn.bufwinid(run.buf)].winbar
            return vim.api.nvim_eval_statusline(bar, { maxwidth = 400 }).str
            """
        )
        return text
