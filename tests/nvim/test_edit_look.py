"""Proposals that language servers see first: a real Neovim, its host, real server processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.nvim.served import BAD, COUNT, GOOD, HUSH, IDLE, PROPOSED, STATE, TEXT, Home


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(neovim, tmp_path / "home", stack)


@pytest.mark.parametrize("mode", ["push", "plain", "pull"])
def test_a_new_error_is_fixed_before_anything_is_shown(home: Home, mode: str) -> None:
    editor = home.open(mode)
    before = editor.lua(STATE)
    assert home.edit(BAD, GOOD)["diagnostics"] == "ok"
    if mode == "pull":
        pulled = [each for each in home.beside(mode) if each["method"] == "diagnostic"]
        assert {each["params"]["identifier"] for each in pulled} == {"fake"}
    assert len(home.asked) == 2
    assert "line 2: `missing_x` is not defined [E1]: return missing_x" in home.asked[1]
    new = "return require('lcursor.edit.proposals').all()[1].parts[1].hunks[1].new"
    assert editor.lua(new) == ["    return x + 1"]
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
    home.open(mode)
    for _ in range(2):
        asked = len(home.asked)
        assert home.edit(BAD, GOOD)["diagnostics"] == "ok"
        assert len(home.asked) == asked + 2
        assert "line 2: `missing_x` is not defined [E1]: return missing_x" in home.asked[-1]
        home.refuse()
    home.wait(lambda: len(home.sent(mode, "didClose")) == len(home.sent(mode, "didOpen")) - 1)
    home.left_alone(mode)
    assert home.editor.lua("return _G.seen") in ([], {})


def test_of_a_server_that_is_at_work_all_the_time_nothing_good_is_believed(home: Home) -> None:
    home.open("stuck", limit_ms=500)
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("stuck", "didOpen")) == 1 + 2
    home.left_alone("stuck")


def test_what_a_server_says_is_no_part_of_the_project_is_not_believed(home: Home) -> None:
    home.open("far")
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("far", "didOpen")) == 1 + 2
    home.left_alone("far")


def test_what_is_still_wrong_is_shown_at_the_hunk(home: Home) -> None:
    editor = home.open("push")
    assert home.edit(BAD)["diagnostics"].startswith("line 2: `missing_x`")
    home.wait(lambda: "✗ diagnostics: line 2: `missing_x`" in "".join(editor.screen.rows()))
    home.left_alone("push")


def test_errors_that_were_there_are_no_new_ones(home: Home) -> None:
    home.file.write_text(TEXT.replace("return y", "return missing_y"))
    home.open("push", "pull")
    for _ in range(2):
        home.editor.wait_lua("return #vim.diagnostic.get() == 2")
        assert home.edit("import os\n\n\n" + GOOD)["diagnostics"] == "ok"
        home.refuse()
    found = home.edit(BAD, BAD)["diagnostics"]
    assert "missing_x" in found
    assert "missing_y" not in found


def test_a_server_that_says_nothing_is_left_alone_after_a_while(home: Home) -> None:
    home.open("silent", limit_ms=300)
    for _ in range(4):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("silent", "didOpen")) == 1 + 2
    assert len(home.sent("silent", "didClose")) == 2
    home.left_alone("silent")


def test_the_word_of_one_server_does_not_need_that_of_another(home: Home) -> None:
    home.open("silent", "push", first_ms=1500)
    assert home.edit(BAD)["diagnostics"].startswith("line 2")


@pytest.mark.parametrize("mode", ["dies", "halts"])
def test_a_server_that_ends_in_the_middle_holds_nothing_up(home: Home, mode: str) -> None:
    editor = home.open(mode, init=HUSH)
    assert "diagnostics" not in home.edit(BAD)
    editor.wait_lua("return #vim.lsp.get_clients({ name = ... }) == 0", mode)
    home.refuse()
    assert "diagnostics" not in home.edit(GOOD)
    assert editor.lua(STATE)["bufs"] == [str(home.file)]


def test_what_a_slow_server_says_when_all_is_over_makes_no_buffer(home: Home) -> None:
    editor = home.open("slow", limit_ms=300)
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
    home.open("odd")
    for _ in range(3):
        assert "diagnostics" not in home.edit(BAD)
        home.refuse()
    assert len(home.sent("odd", "didOpen")) == 1 + 2  # it is not asked about this file any more
    home.left_alone("odd")


def test_what_a_server_says_about_other_files_is_shown_at_once(home: Home) -> None:
    editor = home.open("twins")
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


def test_the_handler_of_another_plugin_gets_what_is_about_files(home: Home) -> None:
    editor = home.open("push")
    assert editor.lua(STATE)["handlers"] == [False]
    editor.lua(
        """
        _G.passed = {}
        vim.lsp.get_clients()[1].handlers["textDocument/publishDiagnostics"] = function(_, result)
          table.insert(_G.passed, vim.fs.basename(vim.uri_to_fname(result.uri)))
        end
        """
    )
    for _ in range(2):
        assert home.edit(BAD)["diagnostics"].startswith("line 2")
        home.refuse()
    editor.lua("vim.lsp.get_clients()[1]:notify('textDocument/didChange', { textDocument = "
               "{ uri = vim.uri_from_bufnr(0), version = 99 }, contentChanges = "
               "{ { text = 'missing_later' } } })")  # fmt: skip
    editor.wait_lua("return #_G.passed > 0")
    assert editor.lua("return _G.passed") == ["a.py"]


def test_a_stop_closes_what_is_open(home: Home) -> None:
    editor = home.open("silent")
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
        vim.cmd("LCursor edit stop")
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
    editor = home.open("push")
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
        " require('lcursor.edit.proposals').all()[1].parts)"
    )
    said = {
        name: [each["text"] for each in checks if each["name"] == "diagnostics"]
        for name, checks in found
    }
    if is_one_file:
        assert said == {"a.py": ["line 6: `missing_y` is not defined [E1]: return missing_y"]}
    else:
        assert said == {"a.py": [], "b.py": []}


def test_two_servers_may_share_their_handlers(home: Home) -> None:
    editor = home.open("push", "plain")
    editor.lua("local one, other = unpack(vim.lsp.get_clients()) other.handlers = one.handlers")
    for _ in range(2):
        assert home.edit(BAD)["diagnostics"].startswith("line 2")
        home.refuse()
    home.left_alone("push")


def test_by_default_no_server_is_touched(home: Home) -> None:
    editor = home.open("push", is_default=True)
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
    editor = home.open(init=inside)
    editor.wait_lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0")
    assert "diagnostics" not in home.edit(BAD)
    assert not any("lcursor-check" in each for each in editor.lua("return _G.told"))
