"""What edits do when a buffer changes: errors are reported, and decided edits cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.edits import Room

OLD = ["one", "two", "three"]
NEW = ["one", "TWO", "three"]
FAIL = "require('lcursor.edit.anchor').told = function() error('a bug') end"


@pytest.fixture
def room(neovim: Path, tmp_path: Path) -> Iterator[Room]:
    with Room(neovim, tmp_path) as one:
        yield one


def test_an_error_while_hunks_are_followed_is_reported_once(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.lua(FAIL)
    room.keys("ggOabove<Esc>Omore<Esc>")
    [note] = room.notes()
    assert note.startswith("lcursor: an error in lcursor: ")
    assert "a bug" in note
    assert room.lines() == ["more", "above", *OLD]


def test_an_error_while_a_sent_text_is_followed_is_reported_once(room: Room) -> None:
    room.open("a.txt", OLD)
    room.nvim.lua("require('lcursor.edit.trace').remember(vim.api.nvim_get_current_buf())")
    room.nvim.lua(FAIL)
    room.keys("ggOabove<Esc>Omore<Esc>")
    [note] = room.notes()
    assert "a bug" in note
    assert room.lines() == ["more", "above", *OLD]
