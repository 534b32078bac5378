"""What the tests of hunks share: a Neovim with files, proposals for them, what became of them."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lcursor.drive.editor import Editor

Params = dict[str, Any]
Lines = Sequence[str]

OLD = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
NEW = ["one", "TWO", "three", "four", "4a", "4b", "five", "six", "eight", "nine", "TEN", "11"]
LISTEN = """
_G.decided = {}
require("lcursor.edit.proposals").on_decided(function(d) table.insert(_G.decided, d) end)
_G.notes = {}
vim.notify = function(text) table.insert(_G.notes, text) end
"""
INIT = """
vim.o.swapfile = false
vim.o.shortmess = vim.o.shortmess .. "I"
"""


def digest(lines: Lines) -> str:
    """Return what Python calls the digest of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def changes(old: Lines, new: Lines) -> list[Params]:
    """Return the changes that make one text of another, as on the wire; not by the code tested."""
    pairs = zip(old, new, strict=False)
    head = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
    matcher = difflib.SequenceMatcher(None, list(old[head:]), list(new[head:]), autojunk=False)
    return [
        {
            "first_row": head + a,
            "last_row": head + b,
            "old": list(old[head + a : head + b]),
            "new": list(new[head + c : head + d]),
        }
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


def file(path: Path | str, old: Lines, new: Lines, **other: Any) -> Params:
    """Return what a turn does to one file."""
    return {
        "path": str(path),
        "name": Path(path).name,
        "kind": "edit",
        "to": "",
        "base": digest(old),
        "tick": -1,
        "changes": other.get("changes") or changes(old, new),
        "checks": [],
        "is_outside": False,
        "is_guarded": False,
        "unneeded": [],
        **other,
    }


def proposed(files: Iterable[Params], turn: str = "t1", **other: Any) -> Params:
    """Return a proposal."""
    return {
        "id": 1,
        "turn": turn,
        "title": "do it",
        "alternative": 1,
        "files": list(files),
        "note": "",
        "attempts": 1,
        "chat": "",
        **other,
    }


class Room:
    """A Neovim in which hunks are looked at."""

    def __init__(self, neovim: Path, home: Path, init: str = "", **more: Any) -> None:
        self.home = home
        self.nvim = Editor(neovim, home, init=INIT + init, **more)
        self.nvim.lua(LISTEN)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *error: object) -> None:
        self.nvim.close()

    def write(self, name: str, lines: Lines) -> Path:
        """Write a file."""
        path = self.home / name
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def open(self, name: str, lines: Lines) -> Path:
        """Write a file and open it in the current window."""
        path = self.write(name, lines)
        self.nvim.command(f"edit! {path}")
        return path

    def offer(self, path: Path, old: Lines, new: Lines, turn: str = "t1", **other: Any) -> None:
        """Propose a text for a file."""
        self.propose(proposed([file(path, old, new, **other)], turn))

    def propose(self, message: Params, instead: str | None = None) -> None:
        """Take a proposal."""
        self.nvim.lua(
            "local msg, instead = ... require('lcursor.edit.proposals')"
            ".propose(msg, instead ~= vim.NIL and instead or nil)",
            message,
            instead,
        )

    def hunks(self, name: str, *args: Any) -> Any:
        """Call a function of hunks.lua."""
        return self.nvim.lua(f"return require('lcursor.edit.hunks').{name}(...)", *args)

    def accept_all(self, turn: str = "t1") -> tuple[list[str], list[str]]:
        """Accept all of a proposal, after its files on the disk were named, and write none of them.

        Returns:
            The files to write, and the warning if there was one.
        """
        paths, problems = self.nvim.lua(
            """
            local requests, notify = require("lcursor.host.requests"), require("lcursor.ui.notify")
            local ask, warn, paths, problems = requests.ask, notify.warn, {}, {}
            requests.ask = function(_, params) paths = params.paths end
            notify.warn = function(text) problems = { text } end
            local proposal = require("lcursor.edit.proposals").get(...)
            require("lcursor.edit.edits").accept(proposal)
            require("lcursor.edit.edits").accept(proposal)
            requests.ask, notify.warn = ask, warn
            return { paths, problems }
            """,
            turn,
        )
        return list(paths), list(problems)

    def keys(self, keys: str) -> None:
        """Press keys and return when they and what follows from them are done."""
        self.nvim.lua(
            "vim.api.nvim_feedkeys(vim.keycode(...), 'tx', false)",
            keys,
        )
        self.settle()

    def settle(self) -> None:
        """Let what is scheduled run."""
        self.nvim.lua("_G.is_later = false; vim.schedule(function() _G.is_later = true end)")
        self.nvim.wait_lua("return _G.is_later")

    def cursor(self, row: int, col: int = 0) -> None:
        """Put the cursor somewhere; rows from 0."""
        self.nvim.lua("vim.api.nvim_win_set_cursor(0, { ... })", row + 1, col)

    def row(self) -> int:
        """Return the row of the cursor, from 0."""
        row: int = self.nvim.lua("return vim.api.nvim_win_get_cursor(0)[1] - 1")
        return row

    def lines(self) -> list[str]:
        """Return the lines of the current buffer."""
        return self.nvim.lines()

    def states(self) -> list[str]:
        """Return the states of the hunks of all turns, in order."""
        self.settle()
        states: list[str] = self.nvim.lua(
            """
            local states = {}
            for _, turn in ipairs(require("lcursor.edit.proposals").all()) do
              for _, part in ipairs(turn.parts) do
                for _, hunk in ipairs(part.hunks) do
                  table.insert(states, hunk.state)
                end
              end
            end
            return states
            """
        )
        return states

    def decided(self) -> list[Params]:
        """Return what was decided since the last call."""
        self.settle()
        told: list[Params] = self.nvim.lua("local told = _G.decided; _G.decided = {}; return told")
        return told

    def notes(self) -> list[str]:
        """Return what the user was told since the last call."""
        self.settle()
        told: list[str] = self.nvim.lua("local told = _G.notes; _G.notes = {}; return told")
        return told

    def clear(self) -> None:
        """Forget all turns, buffers and lists."""
        self.nvim.lua(
            """
            local store = require("lcursor.edit.proposals")
            for _, turn in ipairs(store.all()) do
              store.drop(turn.key)
            end
            vim.fn.setqflist({}, "f")
            vim.cmd("silent! %bwipeout!")
            _G.decided, _G.notes = {}, {}
            """
        )
