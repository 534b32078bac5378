"""Edits through both halves: a real Neovim, its real host, and a model that follows a script."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, ChatServer
from tests.unit.edit.desk import fenced, part_of, reply

ONE = "def one(x):\n    # just that\n    return x\n\n\ndef also(x):\n    return x + 1\n"
TWO = "def two(x):\n    # twice that\n    return x * 2\n"
COUNT = "return require('lcursor.edit.proposals').count()"
PROPOSED = f"return (function() {COUNT} end)() > 0"
IDLE = "return #require('lcursor.edit').running() == 0"
ACCEPT = "require('lcursor.edit.hunks').accept_file()"
TURN = "return require('lcursor.edit.proposals').all()[1].key"
ACCEPT_TURN = """
local store = require("lcursor.edit.proposals")
require("lcursor.edit.edits").accept(store.all()[1])
require("lcursor.edit.edits").accept(store.all()[1])
"""
LINES = "return vim.api.nvim_buf_get_lines(0, 0, -1, false)"
ARE = f"return vim.deep_equal((function() {LINES} end)(), ...)"


def wanted(text: str) -> str:
    """Return what the instruction of these tests makes of a text."""
    return re.sub(r"\bx\b", "value", text)


def model(body: dict[str, Any]) -> Answer:
    """Plan, or call x value."""
    text = str(body["messages"][-1]["content"])
    if "What there is:" in text:
        keys = re.findall(r"^\s*(f\d+\.\d+) def (?:one|two)\b", text, re.M)
        steps = [{"action": "edit", "id": key, "do": "Call x value"} for key in sorted(keys)]
        return reply(json.dumps({"summary": "Call it value.", "steps": steps}))
    return reply(fenced(wanted(part_of(body))))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(model) as fake:
        yield fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "Makefile").touch()
    (root / "one.py").write_text(ONE)
    (root / "two.py").write_text(TWO)
    return root


@pytest.fixture
def opened(
    neovim: Path, tmp_path: Path, root: Path, server: ChatServer
) -> Iterator[Callable[[], Editor]]:
    """Start a Neovim on a file of the project, in the place of the one before."""
    settings = {
        "python": sys.executable,
        "completion": {"auto_trigger": False, "model": "/nowhere.gguf"},
        "models": {"fake": {"url": server.url}},
        "chat": {"server": "off", "model": "fake", "rule_files": False},
    }  # fmt: skip
    init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n"
    with ExitStack() as stack:
        before: list[Editor] = []

        def start() -> Editor:
            for each in before:
                each.close()
            editor = Editor(
                neovim, tmp_path / "home", init=init, files=(root / "one.py",), cwd=root
            )
            before.append(stack.enter_context(editor))
            return editor

        (tmp_path / "home").mkdir()
        yield start


def asked(editor: Editor, command: str) -> None:
    """Ask with an Ex command, and wait until something is proposed and nothing runs."""
    editor.command(command)
    try:
        editor.wait_lua(PROPOSED)
    except TimeoutError as error:
        messages = editor.lua("return vim.fn.execute('messages')")
        raise AssertionError(f"nothing was proposed: {messages}") from error
    editor.wait_lua(IDLE)


def are(editor: Editor, text: str) -> None:
    """Wait until the buffer has these lines."""
    editor.wait_lua(ARE, text.splitlines())


def test_a_region_is_asked_for_accepted_and_taken_back(opened: Callable[[], Editor]) -> None:
    editor = opened()
    asked(editor, "1,3LCEdit Call x value")
    assert editor.lines() == ONE.splitlines()
    editor.lua(ACCEPT)
    changed = ONE.replace("one(x)", "one(value)").replace("return x\n", "return value\n")
    are(editor, changed)
    editor.keys("u")
    are(editor, ONE)
    editor.keys("<C-r>")
    are(editor, changed)
    editor.lua("vim.api.nvim_buf_set_lines(0, -1, -1, false, { '# typed' })")
    editor.command("LCursor edit undo")
    are(editor, f"{ONE}# typed\n")
    editor.command("LCursor edit redo")
    are(editor, f"{changed}# typed\n")
    editor.keys("u")
    are(editor, f"{ONE}# typed\n")


def test_what_is_typed_while_it_is_written_stays(opened: Callable[[], Editor]) -> None:
    editor = opened()
    editor.command("1,3LCEdit Call x value")
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# typed', '' })")
    editor.wait_lua(PROPOSED)
    editor.lua(ACCEPT)
    changed = ONE.replace("one(x)", "one(value)").replace("return x\n", "return value\n")
    are(editor, f"# typed\n\n{changed}")


def test_pasted_code_finds_its_place(opened: Callable[[], Editor]) -> None:
    editor = opened()
    editor.lua("vim.fn.setreg('a', ...)", "def also(x):\n    return x + 3\n")
    asked(editor, "LCursor edit apply a")
    editor.lua(ACCEPT)
    are(editor, ONE.replace("+ 1", "+ 3"))


def test_a_quickfix_list_is_worked_through_as_one_turn(
    opened: Callable[[], Editor], root: Path
) -> None:
    editor = opened()
    editor.lua(
        "vim.fn.setqflist(vim.tbl_map(function(one) return { filename = one[1], lnum = one[2],"
        " text = 'x says nothing' } end, ...)) vim.cmd.copen()",
        [[str(root / "one.py"), 7], [str(root / "two.py"), 3]],
    )
    asked(editor, "LCEdit Call x value")
    assert editor.lua(COUNT) >= 2
    assert "attempts" not in editor.lua("return vim.fn.execute('messages')")  # one for each place
    editor.command("wincmd p")
    editor.lua(ACCEPT_TURN)
    editor.wait_lua("return vim.fn.readfile(...)[1] == 'def two(value):'", str(root / "two.py"))


def test_open_hunks_are_had_again_in_another_neovim(opened: Callable[[], Editor]) -> None:
    editor = opened()
    asked(editor, "1,3LCEdit Call x value")
    key = editor.lua(TURN)
    editor = opened()
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# typed', '' })")
    editor.command("LCursor edit list")
    editor.wait_lua("return vim.fn.search('Call x value', 'nw') > 0")
    editor.lua("vim.fn.search('Call x value', 'w')")
    editor.keys("<CR>")
    editor.wait_lua(PROPOSED)
    assert editor.lua(TURN) == key
    editor.lua("vim.cmd.buffer('one.py')")
    editor.lua(ACCEPT)
    changed = ONE.replace("one(x)", "one(value)").replace("return x\n", "return value\n")
    are(editor, f"# typed\n\n{changed}")


@pytest.mark.parametrize("form", ["one", "two", "mixed"])
def test_line_ends_are_those_of_the_file(
    opened: Callable[[], Editor], root: Path, form: str
) -> None:
    """In an open file, and in one that is not open."""
    ends = {"one": (b"\n", b"\n"), "two": (b"\r\n", b"\r\n"), "mixed": (b"\r\n", b"\n")}[form]
    texts = {}
    for name, text in (("one.py", ONE), ("two.py", TWO)):
        first, rest = text.encode().split(b"\n", 1)
        texts[name] = first + ends[0] + rest.replace(b"\n", ends[1])
        (root / name).write_bytes(texts[name])
    editor = opened()
    editor.lua(
        "vim.fn.setqflist(vim.tbl_map(function(one) return { filename = one[1], lnum = one[2],"
        " text = 'x says nothing' } end, ...)) vim.cmd.copen()",
        [[str(root / "one.py"), 2], [str(root / "two.py"), 2]],
    )
    asked(editor, "LCEdit Call x value")
    editor.command("wincmd p")
    editor.lua(ACCEPT_TURN)
    editor.wait_lua("return vim.fn.readfile(...)[1]:find('value') ~= nil", str(root / "two.py"))
    two = texts["two.py"].replace(b"x", b"value")
    assert (root / "two.py").read_bytes() == two
    editor.command("write")
    one = texts["one.py"].replace(b"(x)", b"(value)", 1).replace(b"return x", b"return value", 1)
    assert (root / "one.py").read_bytes() == one


def test_bytes_that_are_not_utf_8_stay_in_text_and_name(
    opened: Callable[[], Editor], root: Path
) -> None:
    data = ONE.encode().replace(b"just that", b"caf\xe9 \xff")
    (root / "caf\udce9.py").write_bytes(data)
    editor = opened()
    editor.lua("vim.cmd('edit ++enc=utf-8 ++bad=keep ' .. vim.fn.fnameescape(...))", "caf\udce9.py")
    asked(editor, "1,3LCEdit Call x value")
    editor.lua(ACCEPT)
    editor.wait_lua("return vim.fn.getline(1) == 'def one(value):'")
    editor.command("write")
    changed = data.replace(b"one(x)", b"one(value)").replace(b"return x\n", b"return value\n")
    assert (root / "caf\udce9.py").read_bytes() == changed
