"""Servers with tools, as people use them: allow one, let an agent call it, see what has changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes import mcp_server
from tests.nvim.home import IDLE, Home, told
from tests.nvim.test_agent_real import has
from tests.nvim.test_chat_real import FAILURE

pytest.importorskip("mcp")

SCRIPT = Path(mcp_server.__file__)
TEXT = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
HAS = f"return (function() {TEXT} end)():find(..., 1, true) ~= nil"
NOTE = """
local lines = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true })) do
  for _, line in ipairs(mark[4].virt_lines or {}) do
    table.insert(lines, vim.iter(line):map(function(chunk) return chunk[1] end):join(""))
  end
end
return table.concat(lines, " "):find(..., 1, true) ~= nil
"""
FIND = "I look for a tool.\n```mcp_find\nrepeat some words\n```"
CALL = 'I call it.\n```mcp_call it__echo\n{"text": "hello from the server"}\n```'
FINISH = "```finish\nIt said hello.\n```"


def shows(editor: Editor, text: str) -> None:
    """Wait until the current buffer holds a text."""
    try:
        editor.wait_lua(HAS, text)
    except TimeoutError:
        raise AssertionError(editor.lua(TEXT), editor.lua("return notes")) from None


def configure(editor: Editor, *behaviour: str) -> None:
    """Set the server `it`."""
    command = [sys.executable, str(SCRIPT), *behaviour]
    settings: dict[str, Any] = {
        "mcp": {"servers": {"it": {"command": command, "readable": [str(SCRIPT)]}}}
    }
    editor.lua("require('lcursor').setup(vim.json.decode(...))", json.dumps(settings))


def allow(editor: Editor) -> None:
    """Read what the server may do, and allow it and its tools."""
    editor.command("LCursor mcp")
    shows(editor, "it  new")
    editor.keys("<CR>")
    shows(editor, "network    none")
    shows(editor, "Its tools are listed here once it has run.")
    editor.keys("a")
    shows(editor, "new       it__echo(text: string)")
    shows(editor, "Repeat a text.")
    editor.keys("a")
    shows(editor, "allowed   it__echo(text: string)")
    editor.keys("q")


def test_an_agent_finds_and_calls_a_tool_after_approval(home: Home) -> None:
    editor = home.open()
    configure(editor)
    allow(editor)
    home.replies += [FIND, CALL, FINISH]
    editor.command("LCursor agent policy=ask let the server say hello")
    has(editor, 'waits for approval\n```bash\nit__echo\n{\n  "text": "hello from the server"\n}')
    editor.keys("]wga")
    has(editor, "## Done\n\nIt said hello.")
    read = [each["messages"][-1]["content"] for each in home.asked]
    assert "it__echo(text: string) — Repeat a text." in read[1]
    assert read[2] == "hello from the server"
    system = home.asked[0]["messages"][0]["content"]
    assert "mcp_find" in system
    assert "echo" not in system


def test_a_chat_searches_and_calls_after_approval(home: Home) -> None:
    editor = home.open()
    configure(editor)
    allow(editor)
    home.replies += [FIND, CALL, "It said hello.", CALL, "Again.", CALL, "Then not."]
    editor.command("LCChat What does the server say?")
    shows(editor, "## Result\n\nTools for “repeat some words”:\n```\nit__echo(text: string)")
    shows(editor, '{"text": "hello from the server"}\n```')
    editor.wait_lua(NOTE, "waits for approval: ga runs it, gA also in future in this chat, gx")
    editor.command("%s/from the server/from Ada/")
    editor.keys("ga")
    shows(editor, '```json\n{"text": "hello from Ada"}\n```\n\nResult of it__echo:')
    shows(editor, "## Model\n\nIt said hello.\n\n## You\n\n")
    read = home.asked[2]["messages"][-1]["content"]
    assert "Result of it__echo:\n```\nhello from Ada\n```" in read
    editor.keys("Goagain<C-s>")
    editor.wait_lua(NOTE, "waits for approval")
    editor.keys("gA")
    shows(editor, "Again.\n\n## You")
    editor.keys("Goand again<C-s>")
    shows(editor, "Then not.\n\n## You")  # without a question
    assert home.asked[-1]["messages"][-1]["content"].startswith("Result of it__echo:")


def test_a_call_of_a_chat_can_be_rejected_also_after_the_chat_was_opened_again(
    home: Home,
) -> None:
    editor = home.open()
    configure(editor)
    allow(editor)
    home.replies += [CALL, "Then not."]
    editor.command("LCChat What does the server say?")
    editor.wait_lua(NOTE, "waits for approval")
    editor.command("bdelete!")
    editor.command("lua require('lcursor').chat({ chat = 'last' })")
    editor.wait_lua(NOTE, "waits for approval")
    editor.keys("gxnot now<CR>")
    shows(editor, "## Result\n\nThe user rejected this call: not now.")
    shows(editor, "Then not.")


def test_a_question_of_a_server_is_a_form_in_the_buffer(home: Home) -> None:
    editor = home.open()
    configure(editor)
    allow(editor)
    call = '```mcp_call it__work\n{"text": "ask Who are you?"}\n```'
    home.replies += [call, FINISH]
    editor.command("LCursor agent let the server ask")
    has(editor, "The server it asks: Who are you?")
    has(editor, "name: Ada")
    editor.command("%s/name: Ada/name: Eve/")
    editor.command("%s/age:/age: 36/")
    editor.keys("]w<CR>")
    has(editor, "## Done")
    answer = '{"action": "accept", "content": {"age": 36, "name": "Eve"}}'
    assert home.asked[1]["messages"][-1]["content"] == answer


def test_a_changed_server_is_shown_with_the_difference(home: Home) -> None:
    editor = home.open()
    configure(editor)
    allow(editor)
    home.open()
    editor = home.open()
    configure(editor, "noisy")
    home.replies += [CALL, FINISH]
    editor.command("LCursor agent let the server say hello")
    has(editor, "The MCP server it has changed: allow it with :LCursor mcp")
    has(editor, "## Done")
    assert "the user has not allowed this" in home.asked[1]["messages"][-1]["content"]
    editor.command("LCursor mcp")
    shows(editor, "it  changed")
    editor.keys("<CR>")
    shows(editor, "Changed since you allowed it:")
    shows(editor, f"  + arguments  {SCRIPT} noisy")


def test_a_key_in_the_settings_is_an_error(home: Home) -> None:
    editor = home.open()
    row = {"command": ["server"], "env": {"TOKEN": "ghp_" + "a1B2" * 10}}
    settings = json.dumps({"mcp": {"servers": {"it": row}}})
    editor.lua("require('lcursor').setup(vim.json.decode(...))", settings)
    editor.command("LCursor mcp")
    shows(editor, "it  broken")
    told(editor, "mcp.servers.it.env.TOKEN looks like a key; write the name of an environment")
    editor.keys("<CR>")
    shows(editor, "Problem:")
    editor.keys("a")
    told(editor, "looks like a key")
    shows(editor, "Its tools are listed here once it has run.")


def test_wrong_settings_are_reported_by_their_names(home: Home) -> None:
    editor = home.open()
    for servers, words in (
        ({"It": {"url": "x"}}, "a name has lower-case letters"),
        ({"a__b": {"url": "x"}}, "a name has lower-case letters"),
        ({"it": {}}, "it: it needs either a command or a url"),
        ({"it": {"command": "x"}}, "it.command: expected a list of texts"),
        ({"it": {"url": "x", "env": {"A": 3}}}, "it.env: expected texts by name"),
        ({"it": {"cmd": ["x"]}}, "it.cmd: no such setting"),
    ):
        found = editor.lua(
            """
            require('lcursor').setup(vim.json.decode(...))
            return require('lcursor.config').problems()
            """,
            json.dumps({"mcp": {"servers": servers}}),
        )
        assert words in found[0]["message"]
        assert "mcp.servers" in found[0]["message"]


def test_servers_of_other_programs_are_only_shown(home: Home) -> None:
    token = "ghp_" + "a1B2" * 10
    row = {"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": token}}
    (home.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"GitHub": row}}))
    editor = home.open()
    editor.command("LCursor mcp import")
    shows(editor, '["github"] = {')
    shows(editor, 'command = { "npx", "-y", "server-github" },')
    shows(editor, '["GITHUB_TOKEN"] = "$GITHUB_TOKEN",  -- set this variable')
    shows(editor, "fetches the newest server-github at each start: name a version")
    assert token not in editor.lua(TEXT)
    text = "local t = {" + editor.lua(TEXT) + "} return vim.tbl_count(t.mcp.servers)"
    assert editor.lua(text) == 1
    editor.keys("q")
    editor.command("LCursor mcp")
    shows(editor, "no servers")


def test_a_chat_uses_resources_and_prompts(home: Home) -> None:
    editor = home.open()
    configure(editor, "texts")
    allow(editor)
    home.replies += ["On Friday.", "Hello."]
    editor.command("LCChat")
    editor.wait_lua(IDLE)
    editor.keys("iwhen? @mcp:it/note:///pl")
    editor.wait_lua("return vim.fn.pumvisible() == 1")
    editor.keys("<C-y><Esc><CR>")
    shows(editor, "On Friday.")
    editor.wait_lua(IDLE)
    sent = home.asked[0]["messages"][-1]["content"]
    assert "Resource of an MCP server, it/note:///plan:\n```\nShip on Friday. @file:a.py" in sent
    assert "def alpha" not in sent  # the resource mentions nothing
    assert sent.endswith("when? @mcp:it/note:///plan")
    editor.keys("GA/it:gr")
    editor.wait_lua("return vim.fn.pumvisible() == 1")
    editor.keys("<C-y> Ada<Esc><CR>")
    shows(editor, "Hello.")
    editor.wait_lua(IDLE)
    sent = home.asked[1]["messages"][-1]["content"]
    assert sent == 'Write greet with {"who": "Ada"}. See @file:a.py'
    editor.keys("GA/it:greet<Esc><CR>")
    editor.wait_lua(f"{FAILURE} == '/it:greet needs who=…'")
    assert len(home.asked) == 2
