"""Golden screens of ghost text: tabs, wide characters, controls, ends of files.

`--update-screens` rewrites `tests/screens/*.txt`; look at the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]

CASES: dict[str, tuple[bytes, str, str, str]] = {
    # name: file, keys into insert mode, ghost, settings
    "plain": (b"def f(x):\n", "o", "if x:\n        return 1\n    return 2", ""),
    "before-a-bracket": (b"print()\nx = 1\n", "f)i", "x, y", ""),
    "tabs": (b"\tif (x)\n\t\ty();\n", "jA", "\t/* a\ttab */\n\telse\n\t\tz();\t// end", ""),
    "tabstop-3": (b"\tif (x)\n", "A", " {\ta\n\t\ty();\n\t}", "vim.o.tabstop = 3"),
    "vartabstop": (b"\ta\n", "A", "\tb\tc\n\td\te\tf", "vim.o.vartabstop = '4,10,6'"),
    "cjk": ("print('你好')\n# 世界\n".encode(), "jA", "和平\tx\n日本語 = '語'", ""),
    "cjk-tabs": ("你\tx\n".encode(), "A", "好\ty\n你好\tz", ""),
    "emoji": (
        "x = '\U0001f600'\n".encode(),
        "A",
        " + '\U0001f44d\U0001f3fd'\n'\U0001f468‍\U0001f4bb'\ty",
        "",
    ),
    "combining": ("cafe\u0301 = 1\n".encode(), "A", "  # n\u0303o\ncafe\u0301\t= 2", ""),
    "controls": (b"a = 1\n", "A", "\x00b\x1bc\x7f\nd\re\x01", ""),
    "nul-bytes": (b"a\x00b\n\x00\n", "A", "\x00c\n\x00", ""),
    "crlf": (b"one\r\ntwo\r\n", "A", " more\n  and more", ""),
    "no-final-newline": (b"one\ntwo", "jA", " more\nthree", ""),
    "empty-file": (b"", "i", "import os\n\nprint(os)", ""),
    "blank-first-line": (b"def f():\n", "A", "\n    pass", ""),
    "numbers-and-signs": (
        b"def f():\n    pass\n",
        "jA",
        "  # x\n\n    y",
        "vim.o.number = true\nvim.o.signcolumn = 'yes'\nvim.o.cursorline = true",
    ),
    "wrapped": (b"x = 1\n", "A", " + " + "123456789 " * 9 + "\nlast", ""),
    "scrolled": (b"x" * 90 + b"\n", "A", " + 1\n" + "y" * 95, "vim.o.wrap = false"),
}


@pytest.mark.parametrize("name", CASES)
def test_screen(editor: Start, host: FakeHost, golden: Golden, name: str) -> None:
    content, keys, ghost, settings = CASES[name]
    nvim = editor(
        {"a.c": content}, init=settings + "\nvim.o.cindent = false\n", columns=60, lines=12
    )
    nvim.offer(ghost, keys)
    nvim.settle()
    golden(name, nvim.grid())


@pytest.mark.parametrize("name", CASES)
def test_what_is_shown_is_what_is_inserted(
    editor: Start, host: FakeHost, golden: Golden, name: str
) -> None:
    """Accepting moves nothing: the text on the screen is the ghost's, cell by cell."""
    content, keys, ghost, settings = CASES[name]
    nvim = editor(
        {"a.c": content}, init=settings + "\nvim.o.cindent = false\n", columns=60, lines=12
    )
    nvim.offer(ghost, keys)
    nvim.settle()
    seen = [row for row in nvim.screen.rows()[:9] if row != "~"]
    nvim.press("<Tab>")
    assert ghost.replace("\x00", "\n").split("\n")[0] in "\n".join(nvim.lines())
    if name not in ("scrolled", "numbers-and-signs"):  # these differ by what is no text
        assert [row for row in nvim.screen.rows()[:9] if row != "~"] == seen


@pytest.mark.parametrize(
    ("content", "ghost", "result"),
    [
        (b"one\r\ntwo\r\n", " a\nb", b"one a\r\nb\r\ntwo\r\n"),
        (b"one", " a\nb", b"one a\nb"),
        (b"x\x00y\n", "\x00\nb\x00", b"x\x00y\x00\nb\x00\n"),
        (b"x\xe9\n", " a", b"x\xe9 a\n"),
        (b"\xef\xbb\xbfx\n", " a", b"\xef\xbb\xbfx a\n"),
    ],
)
def test_bytes_on_disk_after_an_accept(
    editor: Start, content: bytes, ghost: str, result: bytes
) -> None:
    nvim = editor({"a.c": content}, init="vim.o.fixendofline = false\n")
    nvim.offer(ghost, "A")
    nvim.press("<Tab><Esc>")
    nvim.command("silent write")
    assert Path(nvim.lua("return vim.api.nvim_buf_get_name(0)")).read_bytes() == result


def test_typing_through_a_nul_byte(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.c": b"x\x00\n"})
    request = nvim.offer("a\x00b\nc", "A")
    assert request["prefix"] == "x\x00"
    nvim.press("a<C-v>000b")
    assert nvim.ghost() == "c"
    assert nvim.count() == 1
