"""Notes next to lines: at the end of a line, or wrapped in rows of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor

Call = Callable[..., Any]
Chunks = list[list[str]]


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all of this file."""
    home = tmp_path_factory.mktemp("home")
    with Editor(neovim, home, init="vim.o.swapfile = false\n", columns=40, lines=10) as nvim:
        yield nvim.lua


@pytest.mark.parametrize(
    ("chunks", "rows"),
    [
        ([["ab cd ef", "A"]], ["ab cd", "ef"]),
        ([["abcdefg h", "A"]], ["abcdef", "g h"]),
        ([["日本日本 a", "A"]], ["日本日", "本 a"]),
        ([["", "A"]], [""]),
        ([["  ab  ", "A"], ["cd", "B"]], ["ab  cd"]),
        ([["  ab", "A"], ["cd e", "B"]], ["abcd e"]),  # one word of two chunks
        ([["a b c  d e", "A"]], ["a b c", "d e"]),  # what two blanks separate stays together
        ([["ghh", "K"], [" ok", "B"], ["  gHH", "K"], [" no", "B"]], ["ghh ok", "gHH no"]),
    ],
)
def test_wrap(lua: Call, chunks: Chunks, rows: list[str]) -> None:
    wrapped = lua("return require('lcursor.text.wrap').rows(...)", chunks, 6)
    assert ["".join(chunk[0] for chunk in row) for row in wrapped] == rows


def test_wrapped_chunks_keep_their_groups_and_are_indented(lua: Call) -> None:
    wrapped = lua(
        "return require('lcursor.text.wrap').rows(...)", [["ab", "A"], [" cd", "B"]], 4, 2
    )
    assert wrapped == [[["  "], ["ab", "A"]], [["  "], ["cd", "B"]]]


@pytest.mark.parametrize(
    ("line", "note", "other", "is_at_end"),
    [
        (20, 19, 0, True),
        (20, 20, 0, False),
        (20, 9, 9, True),
        (20, 10, 9, False),  # there is another note
        (50, 29, 0, True),  # the second row of a wrapped line has ten cells
        (50, 30, 0, False),
    ],
)
def test_where_a_note_goes(lua: Call, line: int, note: int, other: int, is_at_end: bool) -> None:
    placed = lua(
        """
        local line, note, other = ...
        vim.cmd("enew!")
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { "", ("x"):rep(line) })
        local theirs, ours = vim.api.nvim_create_namespace("t"), vim.api.nvim_create_namespace("o")
        if other > 0 then
          vim.api.nvim_buf_set_extmark(0, theirs, 1, 0, { virt_text = { { ("y"):rep(other) } } })
        end
        local buf = vim.api.nvim_get_current_buf()
        local id = require("lcursor.ui.notes").set(buf, ours, 1, { { ("z"):rep(note) } })
        return vim.api.nvim_buf_get_extmark_by_id(0, ours, id, { details = true })[3]
        """,
        line,
        note,
        other,
    )
    assert ("virt_text" in placed, "virt_lines" in placed) == (is_at_end, not is_at_end)
