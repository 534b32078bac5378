"""Code actions: where they are offered, what they ask, and that nothing else is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

CODE = "local x = 1\n\nlocal function alpha(y)\n  return y + x\nend\n\nreturn alpha\n"
FILES = {"a.lua": CODE}
# A language server of the user's, whose handler of LspAttach counts.
SERVER = """
_G.attached = 0
vim.api.nvim_create_autocmd("LspAttach", {
  callback = function() _G.attached = _G.attached + 1 end,
})
local function cmd()
  return {
    request = function(method, _, callback, notify_reply)
      if notify_reply then notify_reply(1) end
      local capabilities = { codeActionProvider = true, positionEncoding = _G.encoding }
      callback(nil, method == "initialize" and { capabilities = capabilities } or {})
      return true, 1
    end,
    notify = function() return true end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
function _G.serve(encoding)
  _G.encoding = encoding
  vim.lsp.start({ name = "other", cmd = cmd }, { reuse_client = function() return false end })
end
vim.ui.select = function(items, opts, choose)
  _G.titles = vim.tbl_map(function(item) return item.action.title end, items)
  for _, item in ipairs(items) do
    if item.action.title == _G.wanted then
      return choose(item)
    end
  end
  choose(nil)
end
function _G.lint(row)
  local one = { lnum = row, col = 0, message = "y is odd", severity = 1 }
  vim.diagnostic.set(vim.api.nvim_create_namespace("lint"), 0, { one })
end
"""
FIX, EXPLAIN, TESTS = (f"{name} with lcursor" for name in ("Fix", "Explain", "Add tests"))
AGENT = "Fix with an agent of lcursor"


@pytest.fixture
def start(editor: Start) -> Start:
    """Start a Neovim with a server that can attach, and a picker that answers."""

    def begin(**more: Any) -> Pilot:
        return editor(FILES, init=SERVER + reach.NOTES, **more)

    return begin


def actions(nvim: Pilot, wanted: str = "", keys: str = "", **opts: Any) -> list[str]:
    """Ask for code actions as the user would; return the titles."""
    nvim.lua("_G.wanted, _G.titles = ..., {}", wanted)
    nvim.press(keys or "<Esc>")
    nvim.lua("vim.lsp.buf.code_action(...)", opts)
    nvim.settle()
    titles: list[str] = nvim.lua("return _G.titles")
    return list(titles)


def test_they_are_offered_where_a_server_or_a_linter_is(start: Start, host: FakeHost) -> None:
    nvim = start()
    assert nvim.lua("return package.loaded['lcursor.integrations.actions'] == nil")
    assert actions(nvim) == []
    nvim.lua("serve()")
    nvim.settle()
    assert actions(nvim) == [EXPLAIN, TESTS]
    assert nvim.lua("return attached") == 1  # the user's handler heard only of its server
    nvim.lua("lint(3)")
    assert actions(nvim) == [EXPLAIN, TESTS]
    assert actions(nvim, keys="4G") == [FIX, AGENT, EXPLAIN, TESTS]
    nvim.command("enew")
    nvim.lua("lint(0)")
    nvim.settle()
    assert actions(nvim) == [FIX, AGENT, EXPLAIN, TESTS]
    assert not nvim.has_started_host()


def test_a_buffer_has_one_encoding(start: Start, host: FakeHost) -> None:
    nvim = start()

    def encodings() -> list[str]:
        nvim.settle()
        found: list[str] = nvim.lua(
            """
            return vim.tbl_map(function(client)
              return client.name .. " " .. client.offset_encoding
            end, vim.lsp.get_clients({ bufnr = 0 }))
            """
        )
        return sorted(found)

    for name, encoding in (("b", "utf-8"), ("c", "utf-16"), ("d", "utf-8")):
        nvim.command(f"edit {name}.lua")
        nvim.lua("serve(...)", encoding)
        assert encodings() == [f"lcursor {encoding}", f"other {encoding}"]
    nvim.command("edit e.lua")
    nvim.lua("lint(0)")
    assert encodings() == ["lcursor utf-16"]
    assert nvim.lua("return #vim.lsp.get_clients({ name = 'lcursor' })") == 2


@pytest.mark.parametrize(
    "code",
    [
        "vim.b.lcursor = { enabled = false }",
        "require('lcursor').setup({ enabled = false })",
        "vim.cmd.file('.env')",
    ],
)
def test_they_follow_the_settings(start: Start, host: FakeHost, code: str) -> None:
    nvim = start()
    nvim.lua("serve(); lint(0)")
    nvim.settle()
    assert actions(nvim) == [FIX, AGENT, EXPLAIN, TESTS]
    nvim.lua(code)
    assert actions(nvim) == []


def test_nobody_who_asks_for_something_else_gets_them(start: Start, host: FakeHost) -> None:
    """What organizes imports before a file is written, or shows a bulb at the cursor."""
    nvim = start()
    nvim.lua("serve(); lint(0)")
    nvim.settle()
    assert actions(nvim, context={"only": ["source.organizeImports"], "diagnostics": []}) == []
    assert actions(nvim, context={"triggerKind": 2, "diagnostics": []}) == []
    assert actions(nvim, context={"only": ["quickfix"], "diagnostics": []}) == [FIX]


def test_a_plugin_that_asks_at_each_line_gets_no_actions_on_most(
    start: Start, host: FakeHost
) -> None:
    """nvim-lightbulb and lspsaga do not say why they ask: without `triggerKind`."""
    nvim = start()
    nvim.lua("serve(); lint(3)")
    nvim.settle()

    def bulb(first: int, last: int, col: int) -> list[str]:
        titles: list[str] = nvim.lua(
            """
            local first, last, col = ...
            local titles = {}
            local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", {
              textDocument = vim.lsp.util.make_text_document_params(),
              range = {
                start = { line = first, character = 0 },
                ["end"] = { line = last, character = col },
              },
              context = { diagnostics = {} },
            })
            for _, answer in pairs(answers) do
              for _, action in ipairs(answer.result or {}) do
                table.insert(titles, action.title)
              end
            end
            return titles
            """,
            first,
            last,
            col,
        )
        return titles

    assert [bulb(row, row, 0) for row in (0, 1, 2, 4)] == [[]] * 4
    assert bulb(3, 3, 0) == [FIX, AGENT, EXPLAIN, TESTS]
    assert bulb(0, 1, 0) == [EXPLAIN, TESTS]


def test_fix_asks_for_an_edit(start: Start, host: FakeHost) -> None:
    nvim = start()
    nvim.lua("serve(); lint(3)")
    nvim.settle()
    actions(nvim, FIX, "4G")
    asked = reach.asked(host, "edit.ask")
    assert (asked["first_row"], asked["last_row"]) == (3, 3)
    assert "y is odd" in asked["instruction"]
    actions(nvim, FIX, "3GVj")
    asked = reach.asked(host, "edit.ask", 2)
    assert (asked["first_row"], asked["last_row"]) == (2, 4)


def test_an_agent_gets_the_diagnostics(start: Start, host: FakeHost) -> None:
    nvim = start()
    nvim.lua("serve(); lint(3)")
    nvim.settle()
    actions(nvim, AGENT, "4G")
    asked = reach.asked(host, "agent.start")
    assert asked["task"] == "Fix the problem at a.lua:4"
    assert "y is odd" in asked["context"]


@pytest.mark.parametrize(
    ("keys", "name"),
    [("4G", "a.lua:3-5"), ("3GVj", "a.lua:3-4"), ("gg", "")],
    ids=["function", "selection", "file"],
)
@pytest.mark.parametrize(("title", "command"), [(EXPLAIN, "/explain"), (TESTS, "/tests")])
def test_the_others_ask_in_the_chat(
    start: Start, host: FakeHost, keys: str, name: str, title: str, command: str
) -> None:
    nvim = start()
    nvim.lua("serve()")
    nvim.settle()
    actions(nvim, title, keys)
    opened = reach.asked(host, "chat.open")
    host.send("chat.opened", reach.opened(nvim, opened["id"]))
    sent = reach.asked(host, "chat.send")
    assert sent["text"] == command
    names = [each["name"] for each in sent["attachments"] if each["kind"] == "selection"]
    assert names == ([name] if name else [])


def test_typing_sends_the_server_nothing(start: Start, host: FakeHost) -> None:
    nvim = start(config={"completion": {"auto_trigger": False}})
    nvim.lua("serve()")
    nvim.settle()
    nvim.lua(
        """
        local client = vim.lsp.get_clients({ name = "lcursor" })[1]
        _G.sent = {}
        for _, name in ipairs({ "request", "notify" }) do
          local send = client.rpc[name]
          client.rpc[name] = function(...)
            table.insert(_G.sent, (...))
            return send(...)
          end
        end
        """
    )
    nvim.press("Gonew line<Esc>")
    assert nvim.lua("return _G.sent") == []
    assert actions(nvim) == [EXPLAIN, TESTS]
