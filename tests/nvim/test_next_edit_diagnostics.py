"""Next edits that fix what an edit broke: what servers say, and what they say wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, LONG_MS, SHORT, Typist
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes

Start = Callable[..., Pilot]
Open = Callable[..., Typist]
RUFF = Path(__file__).parents[2] / ".venv/bin/ruff"

TEXT = """\
import os
import sys


def home():
    print(sys.argv)
    return os.getcwd()
"""
# A server of the user's. `_G.answer(method, params)` returns an error and a result; with nil for
# both, it never answers.
SERVER = """
_G.sent = {}
local capabilities = { codeActionProvider = { resolveProvider = true } }
function _G.answer() end
local function cmd()
  return {
    request = function(method, params, callback)
      if method == "initialize" then
        callback(nil, { capabilities = capabilities })
        return true, 1
      end
      table.insert(_G.sent, method)
      _G.reply = function()
        local err, result = _G.answer(method, params)
        if err or result then callback(err, result) end
      end
      if not _G.is_late then vim.schedule(_G.reply) end
      return true, 1
    end,
    notify = function() return true end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
vim.lsp.log.set_level("off")
local space = vim.api.nvim_create_namespace("server")
function _G.report(rows)
  vim.diagnostic.set(space, 0, vim.tbl_map(function(it)
    local line = vim.api.nvim_buf_get_lines(0, it[1], it[1] + 1, false)[1]
    local first, last = line:find(it[2], 1, true)
    return {
      lnum = it[1], col = first - 1, end_lnum = it[1], end_col = last, severity = it[4] or 2,
      source = "Fake", code = it[5] or "unused", message = it[3] or it[2] .. " is unused",
    }
  end, rows))
end
function _G.serve()
  vim.lsp.start({ name = "fake", cmd = cmd })
  report({})
  vim.wait(120)
end
"""
DELETE = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
OTHER = "file:///tmp/other.py"


def fix(*edits: Any, uri: str = "", **more: Any) -> dict[str, Any]:
    """Return a code action that changes lines; `edits` are ranges and texts."""
    changed = [{"range": place, "newText": text} for place, text in edits or [(DELETE, "")]]
    action = {"title": "Remove", "kind": "quickfix", "edit": {"changes": {uri: changed}}}
    return {**action, **more}


class Desk(Typist):
    """Edits a file, while a server reports and fixes what it is told to."""

    def serve(self, *actions: Any, error: Any = None) -> None:
        """Attach the server. It answers with actions, "" as a URI standing for the file."""
        self.nvim.lua("serve()")
        self.nvim.settle()
        if actions or error:
            self.reply(*actions, error=error)

    def reply(self, *actions: Any, error: Any = None) -> None:
        """Set what the server answers."""
        uri = self.nvim.lua("return vim.uri_from_bufnr(0)")
        text = json.dumps(list(actions)).replace('"": [{', f'"{uri}": [{{')
        text = text.replace('"uri": ""', f'"uri": "{uri}"')
        code = "_G.actions, _G.error = vim.json.decode((...)), select(2, ...)"
        self.nvim.lua(code + " function _G.answer() return _G.error, _G.actions end", text, error)

    def report(self, *rows: Any) -> None:
        """Let the server report diagnostics."""
        self.nvim.lua("report(...)", [list(row) for row in rows])

    def rest(self) -> None:
        """Wait until diagnostics count, and their fixes have arrived."""
        self.nvim.lua("vim.wait(120)")
        self.nvim.settle()

    def last_use(self) -> None:
        """Delete the last use of `os`, upon which the server reports its import."""
        self.nvim.press("7Gdd")
        self.report((0, "os"))
        self.rest()

    def why(self) -> str:
        """Return the cause of what is shown, or why nothing is."""
        said: str = self.nvim.lua("return require('lcursor.next_edit').why()")
        return said

    def sent(self) -> list[str]:
        """Return the methods of all requests to the server."""
        found: list[str] = self.nvim.lua("return _G.sent")
        return list(found)


@pytest.fixture
def start(editor: Start, host: FakeHost) -> Callable[..., Desk]:
    """Open a file in which next edits are drawn."""

    def begin(content: str = TEXT, **more: Any) -> Desk:
        more.setdefault("config", CONFIG)
        init = SHORT + SERVER + NOTES + more.pop("init", "")
        desk = Desk(editor({"a.py": content, "b.py": ""}, init=init, **more), host)
        desk.nvim.press("i<Esc>")
        return desk

    return begin


@pytest.fixture
def desk(start: Callable[..., Desk]) -> Desk:
    return start()


def test_the_fix_is_drawn_and_applied_with_one_key(desk: Desk) -> None:
    more = {"title": "", "command": "more"}
    desk.serve(fix(isPreferred=True, command=more), fix(title="Disable for this line"))
    desk.last_use()
    assert desk.drawn()[0][0] == 0
    assert desk.why() == "Next edit: os is unused (Fake); 1 change left."
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == TEXT.splitlines()[1:-1]
    assert desk.drawn() == []
    desk.nvim.press("u")
    assert desk.nvim.lines() == TEXT.splitlines()[:-1]


@pytest.mark.parametrize(
    "actions",
    [
        [],
        [fix(), fix(title="Move")],  # which one?
        [fix(title="Disable for this line")],
        [fix(isPreferred=False)],
        [fix(kind="refactor")],
        [fix(disabled={"reason": ""})],
        [{"title": "Remove", "kind": "quickfix", "command": {"title": "", "command": "more"}}],
        [fix(uri=OTHER)],
        [fix(edit={"changes": {"": [{"range": DELETE, "newText": ""}], OTHER: []}})],
        [fix(edit={"documentChanges": [{"kind": "delete", "uri": ""}]})],
        [fix(edit={"changes": {}})],
        [fix(edit={})],
        [fix(edit=7)],
        [fix((7, "")), 7],
        [fix(({**DELETE, "end": {"line": 99, "character": 0}}, ""))],
        [fix(({**DELETE, "start": {"line": -1, "character": 0}}, ""))],
        [fix(({"start": DELETE["end"], "end": DELETE["start"]}, ""))],
        [fix((DELETE, ""), (DELETE, "x"))],  # they overlap
        [fix((DELETE, "import os\n"))],  # changes nothing
        [fix((DELETE, "x\n" * 13))],
    ],
)
def test_no_fix(desk: Desk, actions: list[Any]) -> None:
    desk.serve(*actions)
    desk.last_use()
    assert "textDocument/codeAction" in desk.sent()
    assert desk.drawn() == []
    assert notes(desk.nvim) == []


def test_an_error_and_a_server_that_never_answers(desk: Desk) -> None:
    desk.serve(error={"code": -32603, "message": "crashed"})
    desk.last_use()
    assert desk.drawn() == []
    desk.nvim.lua("function _G.answer() end")
    desk.nvim.press("6Gdd")
    desk.report((1, "sys"))
    desk.rest()
    assert desk.drawn() == []
    assert notes(desk.nvim) == []


def test_a_fix_that_is_resolved_later(desk: Desk) -> None:
    desk.serve({"title": "Remove", "kind": "quickfix", "isPreferred": True})
    edits = [{"range": DELETE, "newText": ""}]
    change = {"textDocument": {"uri": "", "version": 1}, "edits": edits}
    resolved = fix(edit={"documentChanges": [change]})
    uri = desk.nvim.lua("return vim.uri_from_bufnr(0)")
    text = json.dumps(resolved).replace('"uri": ""', f'"uri": "{uri}"')
    code = "function _G.answer(method) return nil, method:find('resolve') and done or actions end"
    desk.nvim.lua("_G.done = vim.json.decode(...) " + code, text)
    desk.last_use()
    assert desk.drawn()[0][0] == 0


def test_an_answer_after_another_change_is_dropped(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.lua("_G.is_late = true")
    desk.last_use()
    assert len(desk.sent()) == 1
    desk.nvim.press("x")
    desk.nvim.lua("_G.reply()")
    desk.nvim.settle()
    assert desk.drawn() == []


def test_a_buffer_that_is_wiped_meanwhile(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.lua("_G.is_late = true")
    desk.last_use()
    desk.nvim.command("edit b.py | bwipeout! a.py")
    desk.nvim.lua("_G.reply()")
    desk.rest()
    assert desk.drawn() == []
    assert notes(desk.nvim) == []


def test_several_diagnostics_are_one_group(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.lua(
        "local uri = vim.uri_from_bufnr(0) function _G.answer(_, params)"
        " local row = params.range.start.line local action = vim.deepcopy(_G.actions[1])"
        " local place = { start = { line = row, character = 0 },"
        " ['end'] = { line = row + 1, character = 0 } }"
        " action.edit.changes[uri][1].range = place return nil, { action } end"
    )
    desk.nvim.press("6G2dd")
    desk.report((0, "os"), (1, "sys"))
    desk.rest()
    assert desk.why() == "Next edit: os is unused (Fake); 2 changes left."
    desk.review()
    desk.nvim.press("ghA")
    assert desk.nvim.lines()[0] == ""


@pytest.mark.parametrize("is_resolved", [False, True])
def test_nulls_in_an_answer_count_as_absent(desk: Desk, is_resolved: bool) -> None:
    whole = fix(disabled=None, command=None, isPreferred=None, data=[None, 1])
    whole["edit"] |= {"documentChanges": None, "changeAnnotations": None}
    desk.serve(whole)
    if is_resolved:
        desk.nvim.lua(
            "local whole = vim.deepcopy(_G.actions[1]) _G.actions[1].edit = vim.NIL"
            " function _G.answer(method, params) if method ~= 'codeAction/resolve' then"
            " return nil, _G.actions end _G.data = params.data return nil, whole end"
        )
    desk.last_use()
    assert desk.why() == "Next edit: os is unused (Fake); 1 change left."
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[0] == "import sys"
    if is_resolved:
        assert desk.nvim.lua("return #_G.data == 2 and _G.data[1] == vim.NIL")


@pytest.mark.parametrize(
    "row",
    [
        (1, "sys"),  # not in the edit
        (5, "os", "os", 2, "x"),  # in the edited row
        (0, "os", "os is unused", 3),  # a hint
    ],
)
def test_diagnostics_that_do_not_count(desk: Desk, row: Any) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gccreturn os<Esc>" if row[0] == 5 else "7Gdd")
    if row[0] == 5:
        row = (6, *row[1:])
    desk.report(row)
    desk.rest()
    assert desk.sent() == []
    assert desk.drawn() == []


def test_what_was_there_before_the_edit_does_not_count(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.report((0, "os"))
    desk.rest()
    desk.last_use()
    assert desk.sent() == []


def test_the_first_edit_counts_if_the_server_was_there(editor: Start, host: FakeHost) -> None:
    desk = Desk(editor({"a.py": TEXT}, init=SHORT + SERVER, config=CONFIG), host)
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gccreturn 1<Esc>")
    desk.report((0, "os"))
    desk.rest()
    assert desk.drawn()[0][0] == 0


def test_the_first_report_of_a_server_does_not_count(desk: Desk) -> None:
    desk.nvim.lua("local report = _G.report _G.report = function() end serve() _G.report = report")
    desk.reply(fix(isPreferred=True))
    desk.last_use()
    assert desk.sent() == []


def test_what_an_edit_removed_is_not_added_again(desk: Desk) -> None:
    top = {"start": DELETE["start"], "end": DELETE["start"]}
    desk.serve(fix((top, "import os, json\n"), isPreferred=True))
    desk.nvim.press("ggdd")
    desk.report((5, "os", "undefined: os", 1))
    desk.rest()
    assert len(desk.sent()) == 1
    assert desk.drawn() == []


UNDEFINED = (4, "home", "undefined: home", 1, "undefined")


def test_fixes_wait_while_there_is_a_new_error_of_another_kind(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gdd")
    desk.report((0, "os"), UNDEFINED)
    desk.rest()
    assert desk.sent() == []
    desk.report((0, "os"))
    desk.rest()
    assert desk.drawn()[0][0] == 0


def test_warnings_that_were_gone_while_there_was_an_error(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.report((0, "os"))
    desk.rest()
    desk.report(UNDEFINED)
    desk.rest()
    desk.last_use()
    assert desk.sent() == []


def test_an_error_that_goes_at_once_does_not_count(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.delay(stand=LONG_MS)
    desk.nvim.press("7Gdd")
    desk.report((0, "os"))
    desk.delay(stand=30)
    desk.report()
    desk.rest()
    assert desk.sent() == []


def test_a_fix_goes_with_its_diagnostic(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.last_use()
    assert desk.drawn() != []
    desk.nvim.press("Goos.sep<Esc>")
    desk.report()
    desk.rest()
    assert desk.drawn() == []
    assert not desk.has_key()


def test_an_edit_elsewhere_meanwhile(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gdd")
    desk.nvim.press("3Gix = 1<Esc>")
    desk.report((0, "os"))
    desk.rest()
    assert desk.sent() == []


def test_an_undo_meanwhile(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gddu")
    desk.report((0, "os"))
    desk.rest()
    assert desk.sent() == []


def test_insert_mode(desk: Desk) -> None:
    desk.serve(fix(isPreferred=True))
    desk.nvim.press("7Gccreturn 1")
    desk.report((0, "os"))
    desk.rest()
    assert desk.sent() == []  # in the middle of a word
    desk.nvim.press(" ")
    desk.rest()
    assert desk.wait_drawn() == ["⇥ line 1 -import os"]
    desk.nvim.press("<Tab><Tab>")
    assert desk.nvim.lines()[0] == "import sys"


RENAME = "def fetch(url, timeout):\n    return url, timeout\n\n\nimport timeout\n"


def test_proposals_of_the_host_come_first_and_fixes_stay(start: Callable[..., Desk]) -> None:
    desk = start(RENAME)
    place = {"start": {"line": 4, "character": 0}, "end": {"line": 5, "character": 0}}
    desk.serve(fix((place, ""), isPreferred=True))
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.report((4, "timeout"))
    desk.rest()
    desk.report((4, "timeout"), (1, "timeout", "undefined: timeout", 1, "other"))
    desk.rest()
    said = "Next edit: `timeout` became `deadline` in line 1, and Fake reports it; 1 change left."
    assert desk.why() == said
    assert desk.texts() == ["deadline"]
    desk.nvim.press("<Tab>")
    desk.answer()
    desk.report((4, "timeout"))
    assert desk.why() == "Next edit: timeout is unused (Fake); 1 change left."
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == ["def fetch(url, deadline):", "    return url, deadline", "", ""]


def test_a_fix_in_a_row_of_the_host_is_dropped(start: Callable[..., Desk]) -> None:
    desk = start(RENAME)
    place = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
    desk.serve(fix((place, ""), isPreferred=True))
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.report((1, "timeout"))
    desk.rest()
    assert desk.why() == "Next edit: timeout is unused (Fake); 1 change left."
    desk.answer()
    assert desk.texts() == ["deadline"]
    desk.nvim.press("<Tab>")
    assert desk.drawn() == []


def test_dismissing_and_the_option(start: Callable[..., Desk]) -> None:
    desk = start()
    desk.serve(fix(isPreferred=True))
    desk.last_use()
    desk.nvim.press("<Esc>")
    desk.report((0, "os"), (1, "sys"))
    desk.rest()
    assert desk.drawn() == []
    assert len(desk.sent()) == 2  # asked again, and silent
    off = {**CONFIG, "next_edit": {"mode": "draw", "diagnostics": False}}
    desk = start(config=off)
    desk.serve(fix(isPreferred=True))
    desk.last_use()
    assert desk.sent() == []


def test_positions_in_utf_16_up_to_the_end_of_the_file(start: Callable[..., Desk]) -> None:
    desk = start("s = '😀', os\nos = 1\n\nprint(os)\n")
    end = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}
    word = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 12}}
    desk.serve(fix((end, ""), (word, ""), isPreferred=True))
    desk.nvim.press("4Gdd")
    desk.report((0, "os"))
    desk.rest()
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == ["s = '😀'"]


def test_a_fix_of_the_edited_row_too_is_dropped(desk: Desk) -> None:
    desk.serve(fix(({**DELETE, "end": {"line": 7, "character": 0}}, "x"), isPreferred=True))
    desk.nvim.press("7Gccreturn 1<Esc>")
    desk.report((0, "os"))
    desk.rest()
    assert len(desk.sent()) == 1
    assert desk.drawn() == []


def test_with_ruff(start: Callable[..., Desk]) -> None:
    desk = start(TEXT + "    pass\n")
    desk.nvim.lua(
        "_G.changes = 0 vim.api.nvim_create_autocmd('DiagnosticChanged', {"
        " callback = function() _G.changes = _G.changes + 1 end })"
    )
    code = "vim.lsp.start({ name = 'ruff', cmd = { ..., 'server', '--isolated' } })"
    desk.nvim.lua(code, str(RUFF))
    desk.nvim.wait_lua("return _G.changes > 0")
    desk.rest()
    desk.nvim.press("7Gdd")
    desk.wait_drawn()
    assert desk.why() == "Next edit: `os` imported but unused (Ruff); 1 change left."
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[0] == "import sys"
    desk.nvim.press("5Gdd")
    desk.wait_drawn()
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == ["", "", "def home():", "    pass"]
