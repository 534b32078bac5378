"""The code blocks of a chat: found at the cursor, yanked, put into the code, opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n\nz = 1\n"}
SAID = """First:

```python
def beta():
    return 1
```

then

````md path=notes/new.md
# Title
```sh
ls
```
````

the end"""
TALK = [reach.message(1, "user", "why?"), reach.message(2, "assistant", SAID)]

CASES: list[tuple[str, list[list[Any]]]] = [
    ("a\n```lua\nx\n```\nb", [["lua", "", ["x"], 1, 3]]),
    ("```\nx\n\n```", [["", "", ["x", ""], 0, 3]]),
    ("  ```py\n  a\n    b\n  ```", [["py", "", ["a", "  b"], 0, 3]]),
    ("~~~c++ src/a.cc\n```\n~~~", [["c++", "src/a.cc", ["```"], 0, 2]]),
    ("```python:src/a.py\nx\n```", [["python", "src/a.py", ["x"], 0, 2]]),
    ('```js title="a b.js"\nx\n```', [["js", "a b.js", ["x"], 0, 2]]),
    ("```py {path=x/y.py}\nx\n```", [["py", "x/y.py", ["x"], 0, 2]]),
    ("```py\nnot closed", [["py", "", ["not closed"], 0, 1]]),
    ("```inline``` text", []),
    ("no block", []),
]


def test_blocks_are_found_as_markdown_has_them(editor: Start) -> None:
    nvim = editor(FILES)
    for text, blocks in CASES:
        found = nvim.lua(
            """
            return vim.tbl_map(function(b)
              return { b.language, b.path, b.lines, b.first, b.last }
            end, require("lcursor.chat.code_blocks").parse(vim.split(..., "\\n"), 0))
            """,
            text,
        )
        assert found == blocks, text


def test_yank_takes_the_block_at_the_cursor(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    reach.chat(nvim, host, TALK)
    register = "return { vim.fn.getreg(...), vim.fn.getregtype(...) }"
    nvim.lua("vim.fn.cursor(1, 1) vim.fn.search('return 1')")
    nvim.press("gy")
    assert nvim.lua(register, '"') == ["def beta():\n    return 1\n", "V"]
    assert reach.told(nvim)[-1] == "lcursor: 2 lines of python yanked"
    nvim.lua("vim.fn.search('^then')")  # between two blocks: the next
    nvim.press('"agy')
    assert nvim.lua(register, "a") == ["# Title\n```sh\nls\n```\n", "V"]
    assert nvim.lua(register, '"')[0] == "def beta():\n    return 1\n"
    nvim.press("Ggy")  # in the draft: the last one
    assert nvim.lua(register, '"')[0].startswith("# Title")


def test_insert_puts_it_where_the_code_is(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.press("3G")
    reach.chat(nvim, host, TALK)
    nvim.lua("vim.fn.cursor(1, 1) vim.fn.search('return 1')")
    nvim.press("gp")
    code = ["def alpha(x):", "    return x", "def beta():", "    return 1", "z = 1"]
    assert nvim.lines() == code
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [3, 0]
    assert reach.told(nvim)[-1] == "lcursor: 2 lines of python inserted into a.py; u undoes it"
    nvim.press("u")
    assert nvim.lines() == FILES["a.py"].splitlines()


def test_insert_keeps_a_line_that_is_not_blank(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.press("G")
    reach.chat(nvim, host, TALK)
    nvim.lua("vim.fn.cursor(1, 1) vim.fn.search('return 1')")
    nvim.press("gp")
    assert nvim.lines()[3:] == ["z = 1", "def beta():", "    return 1"]


def test_open_makes_a_buffer_of_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, lines=40)
    reach.chat(nvim, host, TALK)
    nvim.lua("vim.fn.cursor(1, 1) vim.fn.search('return 1')")
    nvim.press("go")
    assert nvim.lines() == ["def beta():", "    return 1"]
    assert nvim.lua("return { vim.bo.filetype, vim.api.nvim_buf_get_name(0) }") == ["python", ""]
    nvim.command("wincmd b")
    nvim.lua("vim.fn.cursor(1, 1) vim.fn.search('# Title')")
    nvim.press("go")
    assert nvim.lua("return vim.fn.expand('%:t')") == "new.md"
    assert nvim.lua("return vim.bo.filetype") == "markdown"
    nvim.command("write ++p")
    assert (nvim.home / "project/notes/new.md").read_text() == "# Title\n```sh\nls\n```\n"


def test_apply_makes_an_edit_of_the_block(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    reach.chat(nvim, host, TALK)
    nvim.press("ga")
    asked = reach.asked(host, "edit.apply")
    assert (asked["chat"], asked["file"]) == ("key1", "notes/new.md")


def test_no_block_is_said(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    reach.chat(nvim, host)
    nvim.press("gy")
    assert reach.told(nvim) == ["lcursor: no code block here"]
