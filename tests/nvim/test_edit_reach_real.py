"""Edits as people have them: a real Neovim, its real host, a server that follows a script."""

from __future__ import annotations

import json

from tests.nvim.home import COUNT, A, Home, proposed, told

NEW = "def alpha(x):\n    return x + 1\n"
BETA = "def beta(y):\n    return 2 * y\n"
PASTED = """\
a.py
```python
<<<<<<< SEARCH
    return x
=======
    return x + 1
>>>>>>> REPLACE
```

b.py
```python
<<<<<<< SEARCH
b = 1
=======
b = 2
>>>>>>> REPLACE
```
"""


def test_asked_taken_in_part_and_taken_back_as_a_whole(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{NEW}```"]
    editor.command("1,2LCEdit add one")
    proposed(editor)
    assert "add one" in json.dumps(home.asked[0]["messages"])
    assert editor.lines() == A.splitlines()
    editor.keys("2Ggh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    editor.keys("Gotyped<Esc>")
    editor.wait_lua("return vim.fn.getline('$') == 'typed'")
    editor.command("LCursor undo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x'")
    assert editor.lines() == [*A.splitlines(), "typed"]
    editor.command("LCursor redo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    assert editor.lines() == [
        NEW.splitlines()[0],
        NEW.splitlines()[1],
        *A.splitlines()[2:],
        "typed",
    ]


def test_another_way_is_another_alternative(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{NEW}```", "```python\ndef alpha(x):\n    return 1 + x\n```"]
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.keys("2G]H")
    editor.wait_lua("return #require('lcursor.edit.proposals').all() == 2")
    proposed(editor)
    editor.keys("gh")
    editor.wait_lua("return vim.fn.getline(2) == '    return 1 + x'")


def test_all_of_what_was_pasted_is_taken_and_taken_back(home: Home) -> None:
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", PASTED)
    editor.command("LCursor apply")
    proposed(editor, 2)
    assert (home.project / "b.py").read_text() == "b = 1\n"
    editor.command("LCursor accept all")
    editor.wait_lua(f"{COUNT} == 0")
    assert editor.lines()[1] == "    return x + 1"
    assert (home.project / "a.py").read_text() == A  # the user saves it
    assert (home.project / "b.py").read_text() == "b = 2\n"
    editor.command("LCursor undo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x'")
    assert (home.project / "b.py").read_text() == "b = 1\n"


def test_what_was_open_when_neovim_ended_is_there_again(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{BETA}```"]
    editor.command("5,6LCEdit double it")
    proposed(editor)
    editor = home.open()
    editor.command("LCursor edits")
    editor.wait_lua("return vim.fn.getline(1):find('1 open') ~= nil")
    editor.keys("<CR>")
    editor.wait_lua(f"{COUNT} == 1")
    editor.wait_lua("return vim.bo.buftype == 'quickfix'")
    editor.keys("<CR>gh")
    editor.wait_lua("return vim.fn.getline(6) == '    return 2 * y'")


def test_places_of_a_list_are_not_counted_as_attempts(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{NEW}```", f"```python\n{BETA}```"]
    editor.command("vimgrep /^def/ % | copen")
    editor.command("LCEdit say it otherwise")
    proposed(editor, 2)
    assert told(editor, "proposed") == "lcursor: 2 changes proposed"
