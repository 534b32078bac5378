"""A project with language servers, in a real Neovim with its host and a fake chat server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, ChatServer
from tests.unit.edit.desk import fenced, reply

SERVER = Path(__file__).resolve().parents[1] / "fakes/language_server.py"
TEXT = "def one(x):\n    return x\n\n\ndef two(y):\n    return y\n"
BAD = "def one(x):\n    return missing_x"
GOOD = "def one(x):\n    return x + 1"
COUNT = "return require('lcursor.edit.proposals').count()"
PROPOSED = f"return (function() {COUNT} end)() > 0"
IDLE = "return #require('lcursor.edit').running() == 0"
CHECKS = """
local found = {}
local turns = require("lcursor.edit.proposals").all()
for _, each in ipairs(turns[#turns].parts[1].file.checks) do
  found[each.name] = each.is_ok and "ok" or each.text
end
return found
"""
START = """
vim.o.swapfile = false
_G.seen, _G.added, _G.noted = {}, {}, {}
vim.api.nvim_create_autocmd("LspNotify", { callback = function(event)
  table.insert(_G.noted, event.data.method .. " " .. vim.json.encode(event.data.params))
end })
vim.api.nvim_create_autocmd("DiagnosticChanged", { callback = function()
  for _, each in ipairs(vim.diagnostic.get()) do
    _G.seen[vim.api.nvim_buf_get_name(each.bufnr) .. ": " .. each.message] = true
  end
end })
vim.api.nvim_create_autocmd("BufAdd", { callback = function(event)
  table.insert(_G.added, event.file)
end })
vim.api.nvim_create_autocmd("FileType", { pattern = "python", callback = function(event)
  for name, cmd in pairs(vim.json.decode([==[%s]==])) do
    vim.lsp.start({ name = name, cmd = cmd, root_dir = vim.fn.getcwd() }, { bufnr = event.buf })
  end
end })
"""
STATE = """
local bufs = vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())
bufs = vim.tbl_filter(function(name) return name ~= "" end, bufs) -- our own have no names
local said = vim.tbl_map(function(each) return each.message end, vim.diagnostic.get())
local handlers = {}
for _, client in ipairs(vim.lsp.get_clients()) do
  if client.name ~= "lcursor" then
    table.insert(handlers, client.handlers["textDocument/publishDiagnostics"] ~= nil)
  end
end
return { bufs = bufs, said = said, handlers = handlers }
"""
LONG_MS = 5500
"""More than a busy machine makes a server late, and less than the host waits for the editor."""
SHORT_MS = 50
"""For servers that report once about each text: what they said is their last word."""
WAITS = """
vim.api.nvim_create_autocmd("VimEnter", { callback = function()
  local limits = require("lcursor.edit.lsp_check").limits_ms
  limits.first, limits.whole, limits.quiet, limits.empty = %d, %d, %d, %d
end })
vim.lsp.handlers["fake/empty"] = function(_, result)
  require("lcursor.edit.lsp_check").limits_ms.empty = result.ms
end
"""

HUSH = "vim.notify = function() end\n"  # Neovim says of a server that it ended, and waits for a key


class Home:
    """A person with a project and language servers."""

    def __init__(self, neovim: Path, path: Path, stack: ExitStack) -> None:
        self._neovim, self._path, self._stack = neovim, path, stack
        self.project = path / "project"
        self.project.mkdir(parents=True)
        (self.project / "Makefile").touch()
        self.file = self.project / "a.py"
        self.file.write_text(TEXT)
        self.asked: list[str] = []
        self.replies: list[str] = []
        self._reply = ""
        self.server = stack.enter_context(ChatServer(self._answer))
        self.editor: Editor

    def _answer(self, body: dict[str, Any]) -> Answer:
        self.asked.append(json.dumps(body["messages"]))
        if self.replies:
            self._reply = self.replies.pop(0)
        return reply(fenced(self._reply))  # again, if it is asked again

    def open(
        self,
        *modes: str,
        init: str = "",
        is_default: bool = False,
        limit_ms: int = LONG_MS,
        first_ms: int = 0,
        **edit: Any,
    ) -> Editor:
        """Start a Neovim with servers, and wait until they have the file.

        Args:
            modes: of the servers.
            init: more Lua for its configuration.
            is_default: leave `edit.diagnostics` as it ships.
            limit_ms: how long a server is waited for.
            first_ms: how long for its first word; 0 for as long as for all.
            edit: more settings.
        """
        table = {
            "python": sys.executable,
            "completion": {"auto_trigger": False, "model": "/nowhere.gguf"},
            "models": {"fake": {"url": self.server.url}},
            "chat": {"server": "off", "model": "fake", "rule_files": False},
            "edit": edit if is_default else {"diagnostics": True, **edit},
        }  # fmt: skip
        cmds = {mode: [sys.executable, str(SERVER), mode, str(self.log_of(mode))] for mode in modes}
        text = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        limits = (first_ms or limit_ms, limit_ms, SHORT_MS, SHORT_MS)
        text += START % json.dumps(cmds) + init + WAITS % limits
        self.editor = self._stack.enter_context(
            Editor(self._neovim, self._path, init=text, files=(self.file,), cwd=self.project)
        )
        for mode in modes:
            self.wait(lambda mode=mode: bool(self.sent(mode, "didOpen")))  # type: ignore[misc]
        return self.editor

    def log_of(self, mode: str) -> Path:
        return self._path / f"{mode}.jsonl"

    def heard(self, mode: str) -> list[dict[str, Any]]:
        """Return what a server was sent about documents: method, name of the file, parameters."""
        log = self.log_of(mode)
        found = []
        for line in log.read_text().splitlines() if log.exists() else []:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # it is being written
            params = message.get("params") or {}
            document = params.get("textDocument") or {}
            if "uri" in document:
                method = message["method"].removeprefix("textDocument/")
                name = Path(document["uri"].removeprefix("file://"))
                found.append({"method": method, "path": name, "params": params})
        return found

    def sent(self, mode: str, *methods: str) -> list[dict[str, Any]]:
        return [each for each in self.heard(mode) if each["method"] in methods]

    def beside(self, mode: str) -> list[dict[str, Any]]:
        """Return what a server was sent about documents that are no files."""
        return [each for each in self.heard(mode) if each["path"] != self.file]

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait for something outside of the editor."""
        end_s = time.monotonic() + 20
        while not is_so():
            assert time.monotonic() < end_s, [self.heard(mode) for mode in ("push", "pull")]
            time.sleep(0.01)

    def begin(self, *replies: str) -> None:
        """Ask for a change."""
        self.replies += replies
        self.editor.command("1,2LCEdit add one")

    def edit(self, *replies: str) -> dict[str, str]:
        """Ask for a change, and return its checks."""
        self.begin(*replies)
        return self.proposed()

    def proposed(self) -> dict[str, str]:
        """Wait for a proposal, and return its checks."""
        try:
            self.editor.wait_lua(PROPOSED)
        except TimeoutError as error:
            messages = self.editor.lua("return vim.fn.execute('messages')")
            raise AssertionError(f"nothing was proposed: {messages}") from error
        self.editor.wait_lua(IDLE)
        found: dict[str, str] = self.editor.lua(CHECKS)
        return found

    def refuse(self) -> None:
        """Refuse all that is proposed."""
        self.editor.lua("require('lcursor.edit.hunks').reject_file()")
        self.editor.wait_lua(f"return (function() {COUNT} end)() == 0")

    def left_alone(self, mode: str) -> None:
        """Look that nothing of the user's was touched, nor what a server knows of it."""
        opened = [each["method"] for each in self.heard(mode) if each["path"] == self.file]
        assert [each for each in opened if each != "diagnostic"] == ["didOpen"]
        assert self.editor.lua("return _G.added") in ([], {})
        noted = self.editor.lua("return _G.noted")  # plugins take it for the current buffer's
        assert not any("lcursor-check" in each for each in noted)
        assert self.editor.lua(STATE)["bufs"] == [str(self.file)]
        assert not any("lcursor-check" in each for each in self.editor.lua("return _G.seen"))
        assert sorted(each.name for each in self.project.iterdir()) == ["Makefile", "a.py"]
        assert self.file.read_text() == TEXT
