"""Neovim's screen, reconstructed from redraw events: text, highlight groups, cursor.

Written by the reader thread, read by any thread. A waiting reader wakes at every
flush, so nothing polls. Source: `:help ui-linegrid`, `:help ui-hlstate`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

Cell = tuple[str, int]  # text, highlight id; the right half of a wide character is ("", id)


class Screen:
    """A grid of cells; rows and columns are 0-based."""

    def __init__(self) -> None:
        self._cells: list[list[Cell]] = []
        self._groups: dict[int, tuple[str, ...]] = {0: ()}
        self.looks: dict[int, dict[str, Any]] = {0: {}}
        """Colours and styles by highlight id; those of id 0 are the defaults."""
        self._changed = threading.Condition()
        self.cursor = (0, 0)
        self.flushed_s = 0.0
        """time.perf_counter() of the last flush."""
        self.on_flush: Callable[[Screen], None] | None = None
        """Called at each flush, on the reader thread; must be quick."""

    def feed(self, events: list[Any]) -> None:
        """Apply the arguments of one `redraw` notification."""
        with self._changed:
            for event in events:
                handler = getattr(self, "_on_" + event[0], None)
                if handler:
                    for args in event[1:]:
                        handler(*args)

    def wait(self, predicate: Callable[[Screen], bool], timeout_s: float) -> bool:
        """Wait until `predicate` is true for a whole screen; return False after the time limit."""
        with self._changed:
            return self._changed.wait_for(lambda: predicate(self), timeout_s)

    def rows(self) -> list[str]:
        """Return the text of each row, without trailing blanks."""
        with self._changed:
            return ["".join(text for text, _ in row).rstrip() for row in self._cells]

    def cells(self) -> list[list[Cell]]:
        """Return a copy of the grid."""
        with self._changed:
            return [list(row) for row in self._cells]

    def has(self, group: str) -> bool:
        """Return whether any cell is drawn with that highlight group."""
        with self._changed:
            ids = {number for number, names in self._groups.items() if group in names}
            return any(number in ids for row in self._cells for _, number in row)

    def marked(self, group: str, start: str, end: str) -> list[str]:
        """Return the rows with each run of cells of a highlight group between two marks."""
        with self._changed:
            return [self._mark(row, group, start, end).rstrip() for row in self._cells]

    def text_of(self, group: str) -> str:
        """Return the text with a highlight group, rows joined by newlines."""
        parts = []
        with self._changed:
            for row in self._cells:
                text = "".join(t for t, number in row if group in self._groups.get(number, ()))
                if text:
                    parts.append(text.rstrip())
        return "\n".join(parts)

    def at_cursor(self, group: str) -> tuple[str, str]:
        """Return the text left of the cursor, and the text of a highlight group from there on.

        The latter continues on the rows below, joined by newlines, up to the first row without it.
        A line that wraps is cut at the edge of the screen.
        """
        with self._changed:
            row, col = self.cursor
            ids = {number for number, names in self._groups.items() if group in names}
            left = "".join(text for text, number in self._cells[row][:col] if number not in ids)
            parts: list[str] = []
            for cells in self._cells[row:]:
                text = "".join(text for text, number in cells if number in ids)
                if parts and not text:
                    break
                parts.append(text.rstrip())
        return left, "\n".join(parts)

    def _mark(self, row: list[Cell], group: str, start: str, end: str) -> str:
        out, inside = [], False
        for text, number in row:
            now = group in self._groups.get(number, ())
            if now != inside:
                out.append(start if now else end)
                inside = now
            out.append(text)
        return "".join(out) + (end if inside else "")

    def _on_grid_resize(self, _grid: int, width: int, height: int) -> None:
        self._cells = [[(" ", 0)] * width for _ in range(height)]

    def _on_grid_clear(self, _grid: int) -> None:
        self._cells = [[(" ", 0)] * len(row) for row in self._cells]

    def _on_grid_cursor_goto(self, _grid: int, row: int, col: int) -> None:
        self.cursor = (row, col)

    def _on_grid_line(self, _grid: int, row: int, col: int, cells: list[Any], *_: Any) -> None:
        number = 0
        for cell in cells:
            if len(cell) > 1:
                number = cell[1]
            for _repeat in range(cell[2] if len(cell) > 2 else 1):
                self._cells[row][col] = (cell[0], number)
                col += 1

    def _on_grid_scroll(
        self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _cols: int
    ) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self._cells[row][left:right] = self._cells[row + rows][left:right]

    def _on_default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.looks[0] = {"foreground": foreground, "background": background}

    def _on_hl_attr_define(self, number: int, rgb: Any, _cterm: Any, info: list[Any]) -> None:
        self.looks[number] = rgb
        self._groups[number] = tuple(entry["hi_name"] for entry in info if entry.get("hi_name"))

    def _on_flush(self) -> None:
        self.flushed_s = time.perf_counter()
        if self.on_flush:
            self.on_flush(self)
        self._changed.notify_all()
