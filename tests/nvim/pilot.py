"""A Neovim whose host is a fake one, with the barriers that make tests of races deterministic."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from lcursor.drive.editor import GHOST, Editor
from tests.fakes.control import FakeHost

# Counts the presses of a key that nobody uses: it has been handled when all before it have.
BARRIER = """
vim.g.settled = 0
vim.keymap.set({ "n", "i", "x", "s" }, "<F12>", "<Cmd>let g:settled += 1<CR>")
vim.o.swapfile = false
vim.o.shortmess = vim.o.shortmess .. "I"
"""


class Pilot(Editor):
    """One Neovim, in insert mode most of the time, and its fake host."""

    def __init__(
        self,
        neovim: Path,
        home: Path,
        host: FakeHost,
        *,
        config: dict[str, Any] | None = None,
        init: str = "",
        **more: Any,
    ) -> None:
        self.host = host
        self._presses = itertools.count(1)
        settings: dict[str, Any] = {"completion": {"debounce_ms": 0}}
        for key, value in (config or {}).items():
            settings[key] = {**settings[key], **value} if key in settings else value
        given = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n"
        super().__init__(neovim, home, init=BARRIER + given + host.init() + init, **more)

    def press(self, keys: str) -> None:
        """Press keys and return when all of them have been handled.

        <C-c> goes to the typeahead: as input it interrupts a Neovim that is busy at that moment,
        which then drops all keys that wait.
        """
        if "<C-c>" in keys:
            self.lua("vim.api.nvim_feedkeys(vim.keycode(...), 't', false)", keys)
        else:
            self.keys(keys)
        self.settle()

    def settle(self) -> None:
        """Return when all keys and messages so far have been handled, and the screen is drawn."""
        self.keys("<F12>")
        self.wait_lua("return vim.g.settled >= ...", next(self._presses))
        if self.host.pids:
            self.host.sync()
        self.command("redraw")

    def insert(self, keys: str = "A") -> dict[str, Any]:
        """Enter insert mode and return the request that follows."""
        self.keys(keys)
        return self.request()

    def request(self, end: str = "") -> dict[str, Any]:
        """Wait for the next request whose prefix has that end.

        Raises:
            TimeoutError: there was none; the message says why, and holds the screen.
        """
        try:
            request = self.host.request()
            while not request["prefix"].endswith(end):
                request = self.host.request()
            return request
        except TimeoutError as error:
            screen = "\n".join(self.screen.rows())
            raise TimeoutError(f"{error}; why: {self.why()}\n{screen}") from None

    def offer(self, text: str, keys: str = "A") -> dict[str, Any]:
        """Enter insert mode, let the host answer with `text`, wait for the ghost."""
        request = self.insert(keys)
        self.host.done(request, text)
        self.wait_ghost()
        return request

    def shows(self) -> str:
        """Return the ghost on the screen when everything has settled."""
        self.settle()
        return self.ghost()

    def count(self) -> int:
        """Return how many requests there were when everything has settled."""
        self.settle()
        return len(self.host.requests)

    def why(self) -> str:
        """Return the code of the reason that :LCursor why would give."""
        code: str = self.lua("return require('lcursor.complete').why().code")
        return code

    def wait_why(self, code: str) -> None:
        """Wait until that is the reason for no ghost."""
        self.wait_lua("return require('lcursor.complete').why().code == ...", code)

    def has_started_host(self) -> bool:
        """Return whether a host was started; its process may not have connected yet."""
        code = (
            "local status = package.loaded['lcursor.host.status']"
            " return status and status.get().state ~= 'stopped'"
        )
        return bool(self.lua(code))

    def stays_silent(self, code: str) -> None:
        """Type in insert mode and see that nobody is asked, for that reason."""
        self.press("ox")
        self.wait_why(code)
        self.press("y")
        assert self.host.requests == []
        assert self.ghost() == ""

    def grid(self) -> str:
        """Return the screen with the ghost between marks, without rows that are empty."""
        rows = self.screen.marked(GHOST, "«", "»")
        return "\n".join(row for row in rows if row not in ("", "~")) + "\n"
