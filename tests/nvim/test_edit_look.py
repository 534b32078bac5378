"""Proposals that language servers see first: a real Neovim, its host, real server processes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, ChatServer
from tests.unit.edit.desk import fenced, reply

SERVER = Path(__file__).resolve().parents[1] / "fakes/language_server.py"
TEXT = "def one(x):\n    return x\n\n\ndef two(y):\n    return y\n"
BAD = "def one(x):\n    return missing_x"
GOOD = "def one(x):\n    return x + 1"
COUNT = "return require('lcursor.edit.store').count()"
PROPOSED = f"return (function() {COUNT} end)() > 0"
IDLE = "return #require('lcursor.edit').running() == 0"
CHECKS = """
local found = {}
local turns = require("lcursor.edit.store").turns()
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
local handlers = vim.tbl_map(function(client)
  return client.handlers["textDocument/publishDiagnostics"] ~= nil
end, vim.lsp.get_clients())
return { bufs = bufs, said = said, handlers = handlers }
"""
HASTE = """
local defer = vim.defer_fn
vim.defer_fn = function(fn, ms)
  return defer(fn, ms == 30000 and 1 or ms)
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
        self.server = stack.enter_context(ChatServer(self._answer))
        self.editor: Editor

    def _answer(self, body: dict[str, Any]) -> Answer:
        self.asked.append(json.dumps(body["messages"]))
        return reply(fenced(self.replies.pop(0)))

    def open(self, *modes: str, init: str = "", is_default: bool = False, **edit: Any) -> Editor:
        """Start a Neovim with servers, and wait until they have the file.

        `edit.diagnostics` is set unless `is_default`.
        """
        table = {
            "python": sys.executable,
            "completion": {"auto_trigger": False, "model": "/nowhere.gguf"},
            "chat": {
                "server": "off", "model": "fake", "rules": False,
                "models": {"fake": {"url": self.server.url}},
            },
            "edit": edit if is_default else {"diagnostics": True, **edit},
        }  # fmt: skip
        cmds = {mode: [sys.executable, str(SERVER), mode, str(self.log_of(mode))] for mode in modes}
        text = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        text += START % json.dumps(cmds) + init
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


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(neovim, tmp_path / "home", stack)


@pytest.mark.parametrize("mode", ["push", "plain", "pull"])
def test_a_new_error_is_mended_before_anything_is_shown(home: Home, mode: str) -> None:
    editor = home.open(mode, retries=1)
    before = editor.lua(STATE)
    assert home.edit(BAD, GOOD)["diagnostics"] == "ok"
    if mode == "pull":
        pulled = [each for each in home.beside(mode) if each["method"] == "diagnostic"]
        assert {each["params"]["identifier"] for each in pulled} == {"fake"}
    assert len(home.asked) == 2
    assert "line 2: `missing_x` is not defined [E1]: return missing_x" in home.asked[1]
    assert editor.lua("return require('lcursor.edit.store').turns()[1].parts[1].hunks[1].new") == [
        "    return x + 1"
    ]
    opened = home.sent(mode, "didOpen")[1:]
    assert [each["params"]["textDocument"]["text"] for each in opened] == [
        TEXT.replace("return x", "return missing_x"),
        TEXT.replace("return x", "return x + 1"),
    ]
    for each in opened:
        assert each["path"].parent == home.project
        assert each["path"].suffix == ".py"
        assert each["params"]["textDocument"]["languageId"] == "python"
    (changed,) = home.sent(mode, "didChange")
    assert changed["params"]["contentChanges"] == [{"text": TEXT}]
    home.wait(lambda: len(home.sent(mode, "didClose")) == 2)
    assert {each["path"] for each in home.sent(mode, "didClose")} == {
        each["path"] for each in opened
    }
    home.left_alone(mode)
    assert editor.lua(STATE)["said"] == before["said"]
    assert editor.lua("return _G.seen") in ([], {})


@pytest.mark.parametrize("mode", ["late", "loads", "asked"])
def test_an_empty_list_is_not_the_last_word(home: Home, mode: str) -> None:
    home.open(mode, retries=1)
    for _ in range(2):
        asked = len(home.asked)
        assert home.edit(BAD, GOOD)["diagnostics"] == "ok"
        assert len(home.asked) == asked + 2
        assert "line 2: `missing_x` is not defined [E1]: return missing_x" in home.asked[-1]
        home.refuse()
    home.wait(lambda: len(home.sent(mode, "didClose")) == len(home.sent(mode, "didOpen")) - 1)
    home.left_alone(mode)
    assert home.editor.lua("return _G.seen") in ([], {})


def test_how_late_a_server_is_gets_known(home: Home) -> None:
    home.open("later", retries=0)
    found = home.edit(BAD)["diagnostics"]
    for tried in range(5):
        home.refuse()
        home.wait(
            lambda: len(home.sent("later", "didClose")) == len(home.sent("later", "didOpen")) - 1
        )
        if found != "ok":
            break
        assert tried < 4, "it is believed each time"
        found = home.edit(BAD).get("diagnostics", "ok")
    assert found.startswith("line 2: `missing_x`")
    home.left_alone("later")


def test_of_a_server_that_is_at_work_all_the_time_nothing_good_is_believed(home: Home) -> None:
    home.open("stuck", retries=0)
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("stuck", "didOpen")) == 1 + 3
    home.left_alone("stuck")


def test_what_a_server_says_is_no_part_of_the_project_is_not_believed(home: Home) -> None:
    home.open("far", retries=1)
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("far", "didOpen")) == 1 + 2
    home.left_alone("far")


def test_what_is_still_wrong_is_shown_at_the_hunk(home: Home) -> None:
    editor = home.open("push", retries=0)
    assert home.edit(BAD)["diagnostics"].startswith("line 2: `missing_x`")
    home.wait(lambda: "✗ diagnostics: line 2: `missing_x`" in "".join(editor.screen.rows()))
    home.left_alone("push")


def test_errors_that_were_there_are_no_new_ones(home: Home) -> None:
    home.file.write_text(TEXT.replace("return y", "return missing_y"))
    home.open("push", "pull", retries=1)
    for _ in range(2):
        home.editor.wait_lua("return #vim.diagnostic.get() == 2")
        assert home.edit("import os\n\n\n" + GOOD)["diagnostics"] == "ok"
        home.refuse()
    found = home.edit(BAD, BAD)["diagnostics"]
    assert "missing_x" in found
    assert "missing_y" not in found


def test_a_server_that_says_nothing_is_left_alone_after_a_while(home: Home) -> None:
    home.open("silent", retries=0)
    for _ in range(4):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("silent", "didOpen")) == 1 + 3
    assert len(home.sent("silent", "didClose")) == 3
    home.left_alone("silent")


def test_the_word_of_one_server_does_not_need_that_of_another(home: Home) -> None:
    home.open("silent", "push", retries=0)
    assert home.edit(BAD)["diagnostics"].startswith("line 2")


@pytest.mark.parametrize("mode", ["dies", "halts"])
def test_a_server_that_ends_in_the_middle_holds_nothing_up(home: Home, mode: str) -> None:
    editor = home.open(mode, init=HUSH, retries=0)
    assert "diagnostics" not in home.edit(BAD)
    editor.wait_lua("return #vim.lsp.get_clients() == 0")
    home.refuse()
    assert "diagnostics" not in home.edit(GOOD)
    assert editor.lua(STATE)["bufs"] == [str(home.file)]


def test_what_a_slow_server_says_when_all_is_over_makes_no_buffer(home: Home) -> None:
    editor = home.open("slow", retries=0)
    home.begin(BAD)
    home.wait(lambda: len(home.sent("slow", "didOpen")) == 2)
    editor.lua(
        """
        local handlers = vim.lsp.get_clients()[1].handlers
        local ours = handlers["textDocument/publishDiagnostics"]
        handlers["textDocument/publishDiagnostics"] = function(err, result, ctx)
          ours(err, result, ctx)
          _G.is_late = _G.is_late or #result.diagnostics > 0
        end
        """
    )
    assert "diagnostics" not in home.proposed()
    editor.wait_lua("return _G.is_late")
    assert len(home.sent("slow", "didClose")) == 1
    home.left_alone("slow")


def test_a_server_that_does_not_take_it_for_the_file_is_not_believed(home: Home) -> None:
    home.open("odd", retries=1)
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("odd", "didOpen")) == 1 + 2  # it is not asked about this file any more
    home.left_alone("odd")


def test_what_a_server_says_about_other_files_is_shown_at_once(home: Home) -> None:
    editor = home.open("twins", retries=0)
    home.edit(BAD)
    home.wait(lambda: len(home.sent("twins", "didClose")) == 1)
    # It said so while its document was open, and took it back when that was closed.
    assert editor.lua("return _G.seen") == {f"{home.file}: it is defined twice": True}
    editor.wait_lua("return #vim.diagnostic.get() == 0")
    editor.lua("_G.seen = {}")
    editor.lua("vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'x = missing_later' })")
    editor.lua("vim.lsp.get_clients()[1]:notify('textDocument/didChange', { textDocument = "
               "{ uri = vim.uri_from_bufnr(0), version = 99 }, contentChanges = "
               "{ { text = 'missing_later' } } })")  # fmt: skip
    editor.wait_lua("return #vim.diagnostic.get() == 1")
    assert list(editor.lua("return _G.seen")) == [f"{home.file}: `missing_later` is not defined"]


def test_handlers_are_those_of_before(home: Home) -> None:
    editor = home.open("push", retries=0, init=HASTE)
    assert editor.lua(STATE)["handlers"] == [False]
    editor.lua(
        "_G.mine = function(...)"
        " return vim.lsp.handlers['textDocument/publishDiagnostics'](...) end"
        " vim.lsp.get_clients()[1].handlers['textDocument/publishDiagnostics'] = _G.mine"
    )
    home.edit(BAD)
    editor.wait_lua(
        "return vim.lsp.get_clients()[1].handlers['textDocument/publishDiagnostics'] == _G.mine"
    )


def test_a_stop_closes_what_is_open(home: Home) -> None:
    editor = home.open("silent", retries=0)
    home.begin(BAD)
    home.wait(lambda: len(home.sent("silent", "didOpen")) == 2)
    told = editor.lua(
        """
        local rpc, told = vim.lsp.get_clients()[1].rpc, {}
        local notify = rpc.notify
        rpc.notify = function(method, params)
          table.insert(told, method)
          return notify(method, params)
        end
        vim.cmd("LCursor stop")
        rpc.notify = notify
        return told
        """
    )
    assert told == ["textDocument/didClose"]  # at once, and not when nobody waits any more
    editor.wait_lua(IDLE)
    assert editor.lua(COUNT) == 0


@pytest.mark.parametrize("is_one_file", [True, False])
def test_many_places_are_asked_about_at_once_where_they_are_in_one_file(
    home: Home, is_one_file: bool
) -> None:
    other = home.project / "b.py"
    other.write_text("def three(z):\n    return z\n")
    editor = home.open("push", retries=0)
    if is_one_file:
        places = [[str(home.file), 2], [str(home.file), 6]]
        home.replies += ["def one(x):\n    return two(x)", "def two(y):\n    return missing_y"]
    else:  # the server would see the old text of the other one
        places = [[str(home.file), 6], [str(other), 2]]
        home.replies += ["def two(y):\n    return missing_y", "def three(z):\n    return missing_z"]
    editor.lua(
        "vim.fn.setqflist(vim.tbl_map(function(one) return { filename = one[1], lnum = one[2],"
        " text = 'return' } end, ...)) vim.cmd.copen()",
        places,
    )
    editor.command("LCEdit add one")
    editor.wait_lua(PROPOSED)
    editor.wait_lua(IDLE)
    found = editor.lua(
        "return vim.tbl_map(function(part) return { part.file.name, part.file.checks } end,"
        " require('lcursor.edit.store').turns()[1].parts)"
    )
    said = {
        name: [each["text"] for each in checks if each["name"] == "diagnostics"]
        for name, checks in found
    }
    if is_one_file:
        assert said == {"a.py": ["line 6: `missing_y` is not defined [E1]: return missing_y"]}
    else:
        assert said == {"a.py": [], "b.py": []}


def test_handlers_that_two_servers_share_are_those_of_before(home: Home) -> None:
    editor = home.open("push", "plain", retries=0, init=HASTE)
    editor.lua("local one, other = unpack(vim.lsp.get_clients()) other.handlers = one.handlers")
    assert editor.lua(STATE)["handlers"] == [False, False]
    for _ in range(2):
        assert home.edit(BAD)["diagnostics"].startswith("line 2")
        editor.wait_lua(f"return not vim.list_contains((function() {STATE} end)().handlers, true)")
        home.refuse()


def test_by_default_no_server_is_touched(home: Home) -> None:
    editor = home.open("push", retries=0, is_default=True)
    editor.lua(
        """
        _G.is_touched = false
        local handlers = vim.lsp.get_clients()[1].handlers
        setmetatable(handlers, { __newindex = function() _G.is_touched = true end })
        """
    )
    assert "diagnostics" not in home.edit(BAD)
    assert home.beside("push") == []
    assert editor.lua("return _G.is_touched") is False


def test_a_server_inside_the_editor_is_not_asked(home: Home) -> None:
    inside = """
    vim.api.nvim_create_autocmd("FileType", { pattern = "python", callback = function(event)
      vim.lsp.start({ name = "inside", cmd = function()
        return {
          request = function(method, _, callback)
            local can = { textDocumentSync = { openClose = true, change = 1 } }
            callback(nil, method == "initialize" and { capabilities = can } or {})
            return true, 1
          end,
          notify = function(method, params)
            local uri = vim.tbl_get(params or {}, "textDocument", "uri")
            _G.told = vim.list_extend(_G.told or {}, { method .. " " .. tostring(uri) })
            return true
          end,
          is_closing = function() return false end,
          terminate = function() end,
        }
      end, root_dir = vim.fn.getcwd() }, { bufnr = event.buf })
    end })
    """
    editor = home.open(init=inside, retries=0)
    editor.wait_lua("return #vim.lsp.get_clients({ bufnr = 0 }) == 1")
    assert "diagnostics" not in home.edit(BAD)
    assert not any("lcursor-check" in each for each in editor.lua("return _G.told"))
