"""Where no suggestion is offered, and why: each reason, without a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import predicted
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        ("disabled", "vim.g.lcursor_enabled = false"),
        ("disabled_buffer", "vim.b.lcursor_enabled = false"),
        ("disabled", "vim.cmd('let g:lcursor_enabled = 0')"),
        ("disabled_buffer", "vim.cmd('let b:lcursor_enabled = 0')"),
        ("disabled", "require('lcursor').setup({ enabled = false })"),
        ("disabled", "require('lcursor').setup({ completion = { enabled = false } })"),
        ("disabled_buffer", "vim.b.lcursor = { completion = { enabled = false } }"),
        ("disabled", "vim.g.lcursor_enabled = false; vim.b.lcursor = { enabled = true }"),
        ("readonly", "vim.bo.readonly = true"),
        ("special", "vim.bo.buftype = 'nofile'"),
        ("special", "vim.bo.buftype = 'acwrite'"),
        ("special", "vim.bo.buflisted = false"),
        (
            "filetype",
            "require('lcursor').setup({ completion = { filetypes = { python = false } } })",
        ),
        (
            "filetype",
            "require('lcursor').setup({ completion = { filetypes = { ['*'] = false } } })",
        ),
        ("filetype", "vim.bo.filetype = 'gitcommit'"),
        ("filetype", "vim.b.lcursor = { completion = { filetypes = { python = false } } }"),
        ("big_file", "require('lcursor.complete.gate').max_file_bytes = 4"),
        ("secret", "vim.api.nvim_buf_set_name(0, '.env')"),
    ],
)
def test_switched_off(editor: Start, code: str, setting: str) -> None:
    nvim = editor(DEF)
    nvim.lua(setting)
    nvim.stays_silent(code)


def test_a_filetype_is_on_where_all_others_are_off(editor: Start) -> None:
    filetypes = {"*": False, "python": True}
    nvim = editor(DEF, config={"completion": {"filetypes": filetypes}})
    assert nvim.insert("o")["filetype"] == "python"


def test_a_buffer_that_is_off_does_not_even_start_the_host(editor: Start) -> None:
    nvim = editor(DEF, init="vim.g.lcursor_enabled = false\n")
    nvim.press("ox<Esc>ox")
    assert not nvim.has_started_host()
    assert nvim.why() == "disabled"


@pytest.mark.parametrize("option", ["auto_trigger", "enabled"])
@pytest.mark.parametrize("where", ["", " buffer"])
def test_switching_off_takes_next_edits_along(
    editor: Start, host: FakeHost, where: str, option: str
) -> None:
    nvim = editor(DEF, config={"completion": {option: False}})

    def requests() -> list[Any]:
        return [sent for sent in host.messages("next_edit.predict") if sent["edits"]]

    nvim.press("ox<Esc>")
    asked = host.wait(requests)[0]
    nvim.command(f"LCursor disable{where}")
    proposal = {"kind": "repetition", "path": asked["files"][0]["path"], "row": 0, "cause": "x"}
    proposal |= {"old": ["def f(x):"], "new": ["def f(y):"], "group": "a"}
    answer = predicted(asked["id"], proposal)
    host.send("next_edit.predicted", answer)
    nvim.press("oy<Esc>")
    assert nvim.lua("return require('lcursor.next_edit').why()") == ""
    nvim.command(f"LCursor enable{where}")
    nvim.press("oz<Esc>")
    host.wait(lambda: len(requests()) > 1)
    (edit,) = requests()[1]["edits"]
    assert edit["new"] == ["    z"]


def test_not_modifiable(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.bo.modifiable = false")
    nvim.press("o")
    assert nvim.why() == "readonly"
    assert host.requests == []


def test_a_long_line(editor: Start) -> None:
    nvim = editor(DEF, init="require('lcursor.complete.gate').max_line_bytes = 10\n")
    nvim.keys("o")
    assert nvim.request("\n    ")
    nvim.press("1234567")
    assert nvim.why() == "long_line"


@pytest.mark.parametrize(
    ("tail", "single_line"),
    [
        ("", False),
        ("  ", False),
        (")", True),
        ("):", True),
        ("')", True),
        ("]};", True),
        (" ,", True),
    ],
)
def test_text_to_the_right_that_does_not_count(editor: Start, tail: str, single_line: bool) -> None:
    nvim = editor({"a.py": "x" + tail + "\n"})
    assert nvim.insert("a")["single_line"] is single_line


@pytest.mark.parametrize("tail", ["y", ") y", "+", " + 1", "(", "))::"])
def test_text_to_the_right_that_counts(editor: Start, host: FakeHost, tail: str) -> None:
    nvim = editor({"a.py": "x" + tail + "\n"})
    nvim.press("a")
    nvim.wait_why("midline")
    assert host.requests == []


@pytest.mark.parametrize(
    ("name", "text", "keys"),
    [
        ("a.py", "# one\n", "A more"),
        ("a.py", "x = 1\n", "A  # one"),
        ("a.lua", "local x = 1 -- one\n", "A more"),
        ("a.lua", "--[[\nlong\n]]\n", "jA more"),
        ("a.c", "/* one\n", "A more"),
    ],
)
def test_comments_when_they_are_off(
    editor: Start, host: FakeHost, name: str, text: str, keys: str
) -> None:
    nvim = editor({name: text}, config={"completion": {"in_comments": False}})
    nvim.press(keys)
    nvim.wait_state()
    nvim.press(" word")
    nvim.wait_why("comment")
    host.skip()
    nvim.press(" and more")
    assert [r for r in host.requests if r["prefix"].endswith("more")] == []


def test_comments_are_completed_unless_they_are_off(editor: Start) -> None:
    nvim = editor({"a.py": "# one\n"})
    assert nvim.insert("A")["prefix"] == "# one"


def test_code_is_completed_when_comments_are_off(editor: Start) -> None:
    nvim = editor({"a.lua": "local x = 1\n"}, config={"completion": {"in_comments": False}})
    assert nvim.insert("A")["prefix"] == "local x = 1"


def test_recording_a_macro_records_no_ghost(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"})
    host.reply = lambda request: "GHOST"
    nvim.keys("A")
    nvim.wait_ghost()
    nvim.press("<Esc>")
    host.skip()
    before = len(host.requests)
    nvim.keys("qaA<Tab>x<Esc>q")
    nvim.settle()
    assert len(host.requests) == before
    assert nvim.lua("return vim.fn.getreg('a')") == "A\tx\x1b"
    nvim.press("j@a")
    assert [line.split() for line in nvim.lines()] == [["one", "x"], ["two", "x"]]
    assert "GHOST" not in "\n".join(nvim.lines())
    assert len(host.requests) == before
    assert nvim.why() == "macro"


def test_replace_mode(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one two\n"})
    nvim.insert("A")
    nvim.press("<Esc>0")
    count = nvim.count()
    nvim.press("Rxyz")
    assert nvim.why() == "replace"
    assert nvim.count() == count
    nvim.press("<Insert>")
    nvim.press("<End>")
    assert nvim.count() == count + 1


def test_a_ghost_goes_when_replace_mode_comes(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    nvim.press("<Insert>")
    assert nvim.ghost() == ""


def test_a_terminal(editor: Start) -> None:
    nvim = editor(DEF)
    nvim.command("terminal cat")
    nvim.keys("ihello<CR>")
    nvim.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]:find('hello') ~= nil")
    assert not nvim.has_started_host()
    assert nvim.why() == "special"


def test_a_prompt(editor: Start) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.cmd.new(); vim.bo.buftype = 'prompt'")
    nvim.press("ihello")
    assert not nvim.has_started_host()
    assert nvim.why() == "special"
