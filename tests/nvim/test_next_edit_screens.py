"""Golden screens of next edits; `--update-screens` rewrites them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]

FAR = RENAME.replace("    session = connect(url)\n", "    session = connect(url)\n" * 60)
LINES = """\
const sizes = [
\tpaint('small', 1),
\tpaint('middle', 2),
\tpaint('large', 3),
\tpaint('huge', 4),
];
"""
CASES: dict[str, tuple[str, str]] = {
    # name: file, keys until the answer
    "near": (RENAME, "gg/timeout<CR>cwdeadline<Esc>"),
    "far": (FAR, "gg/timeout<CR>cwdeadline<Esc>"),
    "review": (RENAME, "gg/timeout<CR>cwdeadline<Esc>"),
    "lines": (LINES, "gg/)<CR>i, 'red'<Esc>"),
}


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("name", CASES)
def test_screen(editor: Start, host: FakeHost, golden: Golden, name: str, columns: int) -> None:
    text, keys = CASES[name]
    file = "a.ts" if name == "lines" else "a.py"
    init = "vim.o.number = true\nvim.o.hlsearch = false\nvim.o.laststatus = 0\n"
    desk = Typist(editor({file: text}, config=CONFIG, init=init, columns=columns, lines=14), host)
    desk.nvim.press(keys)
    desk.answer()
    if name == "review":
        desk.review()
    rows = desk.nvim.screen.marked("DiffAdd", "«", "»")[:13]
    golden(f"next-edit-{name}.{columns}", "\n".join(row for row in rows if row != "~") + "\n")
