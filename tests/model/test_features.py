"""What is built around the model, as a user meets it: real Neovim, real host, real model."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.waiting import WAIT_S

AREAS = "".join(f"def area_{n}(w, h):\n    return w * h * {n}\n\n\n" for n in range(9))
SHAPES = f'"""Areas of things."""\n\n{AREAS}def total(values):\n    \n\n\nprint(total([1, 2]))\n'
ANSWER = "return require('lcursor.complete').last_answer()"
SETTLED = "local c = require('lcursor.complete') return c.current_id() and c.is_settled()"
BUFFERS = """
    local lines = {}
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[buf].buftype ~= "" then
        vim.list_extend(lines, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
      end
    end
    return table.concat(lines, "\\n")
"""


@pytest.fixture
def real(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    """A Neovim in the empty body of a function of a small project."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "shapes.py").write_text(SHAPES)
    home = tmp_path / "home"
    home.mkdir()
    python = os.environ.get("LCURSOR_TEST_PYTHON", sys.executable)
    init = f"vim.g.lcursor = {{ python = {python!r}, completion = {{ min_confidence = 0 }} }}\n"
    with Editor(neovim, home, init=init, files=(project / "shapes.py",), cwd=project) as editor:
        row = SHAPES[: SHAPES.index("def total")].count("\n") + 2
        editor.keys(f"{row}GA")
        editor.wait_state("ready", timeout_s=WAIT_S)
        editor.wait_lua(SETTLED, timeout_s=WAIT_S)
        yield editor


def test_another_suggestion_is_shown_and_taken(real: Editor) -> None:
    real.type("largest =")
    real.wait_lua(SETTLED, timeout_s=WAIT_S)
    first = real.wait_ghost(timeout_s=WAIT_S)
    real.keys("<M-]>")
    assert real.screen.wait(lambda screen: any("(2/" in row for row in screen.rows()), 120)
    second = real.ghost()
    assert second.strip() not in {"", first.strip()}
    real.keys("<S-Tab>")
    real.wait_lua("return vim.api.nvim_get_current_line() ~= '    largest ='")
    taken = real.lua("return vim.api.nvim_get_current_line()")
    assert taken.startswith("    largest =" + second.rstrip())


def test_a_restart_reads_next_to_nothing_and_counts_ghosts(real: Editor, tmp_path: Path) -> None:
    kept = str(tmp_path / "home/cache/lcursor/kv/*/*.kv")
    real.wait_lua("return vim.fn.glob(...) ~= ''", kept, timeout_s=WAIT_S)
    real.keys("<Esc>")
    real.command("LCursor restart")
    real.wait_state("ready", timeout_s=WAIT_S)
    real.keys("A")
    real.wait_lua(SETTLED, timeout_s=WAIT_S)
    stats = real.lua(ANSWER)["stats"]
    assert stats["prompt_tokens"] > 150
    assert stats["reused_tokens"] > 0.9 * stats["prompt_tokens"]

    real.type("return")  # and what becomes of a ghost is counted
    real.wait_lua(SETTLED, timeout_s=WAIT_S)
    real.wait_ghost(timeout_s=WAIT_S)
    real.keys("<Tab>")
    real.wait_lua("return vim.api.nvim_get_current_line() ~= '    return'")
    real.keys("<Esc>")
    real.command("LCursor stats")
    real.wait_lua("return (function() " + BUFFERS + " end)():find('python')", timeout_s=WAIT_S)
    rows = [re.split(" {2,}", line.strip()) for line in real.lua(BUFFERS).splitlines()]
    cells: dict[str, str] = {}
    heads: list[str] = []
    for row in rows:  # several tables if one is too wide
        if row[0] == "filetype":
            heads = row
        elif row[0] == "python":
            cells.update(zip(heads, row, strict=True))
    assert cells["whole"] == "1", cells
    assert cells["partly"] == "0", cells
