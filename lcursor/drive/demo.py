"""Demonstrate ghost text, a chat and an edit in a real Neovim, and an agent.

Prints what a user would see. Works without a terminal. A terminal dims the ghost text, other output
puts it between marks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcursor.drive import demo_agent, demo_chat, demo_edit
from lcursor.drive.editor import GHOST, Editor

SAMPLE = Path(__file__).with_name("sample.py")
SOURCE = Path("src/sequences.py")
"""The sample's name in the demo's project."""
COLUMNS, LINES = 78, 24
SHOWN_ROWS = 12


@dataclass(frozen=True, slots=True)
class Step:
    """A line that is deleted and typed again."""

    line: str
    """The line in the file."""
    typed: str
    accept: tuple[str, ...]
    """Keys that accept the suggestion in parts."""


STEPS = (
    Step("return length", "return", ("<Tab>",)),
    Step("middle = (low + high) // 2", "middle", ("<C-Right>", "<Tab>")),
)

ANSWER = """
local answer = require("lcursor.complete").last_answer()
return answer and answer.stats
"""


@dataclass(slots=True)
class Row:
    """Measurements of one suggestion."""

    typed: str
    suggestion: str
    ghost_ms: float
    stats: dict[str, Any]


def run(neovim: Path, model: str = "") -> None:
    """Run the demo and print it.

    Args:
        neovim: the executable.
        model: a completion model other than the default; a name or a path.

    Raises:
        TimeoutError: an expected screen did not appear.
    """
    with tempfile.TemporaryDirectory(prefix="lcursor-demo-", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "project"
        target = project / SOURCE
        target.parent.mkdir(parents=True)
        (project / "pyproject.toml").touch()
        shutil.copy(SAMPLE, target)
        completion = f"{{ model = {model!r} }}" if model else "{}"
        settings = f"completion = {completion}, chat = {demo_chat.SETTINGS}"
        init = f"vim.g.lcursor = {{ {settings} }}\n"
        home = Path(folder) / "home"
        home.mkdir()
        try:
            with Editor(
                neovim,
                home,
                init=init + "vim.o.showmode = false\n",
                files=(SOURCE,),
                columns=COLUMNS,
                lines=LINES,
                cwd=project,
            ) as editor:
                _introduce(editor)
                rows = []
                for step in STEPS:
                    rows.append(_play(editor, step))
                    editor.command("edit!")  # whatever was accepted, the file is as it was
                _print_table(rows)
                demo_chat.play(editor)
                demo_edit.play(editor)
            demo_agent.play(home)
        finally:
            demo_chat.leave(home)


def _introduce(editor: Editor) -> None:
    started = time.perf_counter()
    editor.keys("i")
    try:
        editor.wait_state("ready", timeout_s=120)
    except TimeoutError:
        messages = editor.lua("return vim.fn.execute('messages')")
        raise TimeoutError(f"the host did not become ready: {messages.strip()}") from None
    took = time.perf_counter() - started
    info = editor.lua("return require('lcursor.host').info()")
    version = ".".join(
        map(str, editor.lua("local v = vim.version() return { v.major, v.minor, v.patch }"))
    )
    detail = editor.lua("return require('lcursor.host.status').get().detail")
    print(f"Neovim {version} opened {SOURCE}; lcursor {info['version']} runs {detail} inside it")
    print(
        f"(host ready {info['ready_ms']:.0f} ms, model ready {info['model_ms']:.0f} ms "
        f"after the first insert; seen from outside {took:.1f} s).\n"
    )
    editor.keys("<Esc>")


def _play(editor: Editor, step: Step) -> Row:
    """Type a line again and accept ghost text."""
    if not editor.lua("return vim.fn.search('\\\\V' .. ..., 'w')", step.line):
        raise LookupError(f"{step.line!r} is not in {SOURCE}")
    editor.keys('zz"_cc')
    before = editor.lua("return #vim.api.nvim_get_current_line()")
    for char in step.typed[:-1]:
        editor.keys(char)
    pressed = time.perf_counter()
    editor.keys(step.typed[-1])
    editor.wait_lua(
        "return #vim.api.nvim_get_current_line() == ...", before + len(step.typed), timeout_s=5
    )
    editor.wait_ghost(timeout_s=120)
    ghost_ms = (editor.screen.flushed_s - pressed) * 1000
    editor.wait_lua("return require('lcursor.complete').why().code == 'shown'")
    editor.wait_lua("return require('lcursor.complete').is_settled()", timeout_s=120)
    ghost = editor.ghost()
    print(f"Typed {step.typed!r}. The suggestion:")
    _print_screen(editor)
    for key in step.accept:
        editor.keys(key)
        if key != step.accept[-1]:
            editor.wait_ghost(lambda text, whole=ghost: text != whole)  # type: ignore[misc]
            print(f"{key} accepts a word:")
            _print_screen(editor)
    editor.wait_lua(
        "return vim.api.nvim_get_current_line():match('^%s*(.-)$') == ...",
        _wanted(step.typed, ghost),
    )
    stats = editor.lua(ANSWER)
    editor.keys("<Esc>")
    editor.screen.wait(lambda screen: not screen.has(GHOST), 5)
    print(f"{step.accept[-1]} takes it:")
    _print_screen(editor)
    return Row(step.typed, ghost, ghost_ms, stats)


def _wanted(typed: str, ghost: str) -> str:
    return (typed + ghost).split("\n")[-1].strip()


def _print_screen(editor: Editor) -> None:
    """Print the rows around the cursor, the ghost marked."""
    marks = ("\x1b[2;3m", "\x1b[0m") if sys.stdout.isatty() else ("«", "»")
    rows = editor.screen.marked(GHOST, *marks)
    middle = editor.screen.cursor[0]
    first = max(0, min(middle - SHOWN_ROWS // 2, len(rows) - SHOWN_ROWS))
    print("  ┌" + "─" * COLUMNS)
    for row in rows[first : first + SHOWN_ROWS]:
        print(f"  │{row}".rstrip())
    print("  └" + "─" * COLUMNS + "\n")


def _short(text: str, most: int = 32) -> str:
    """Return the first line of a text, cut."""
    first, newline, _ = text.partition("\n")
    return first if len(first) <= most and not newline else first[: most - 1] + "…"


def _print_table(rows: list[Row]) -> None:
    head = ("typed", "suggestion", "keystroke → ghost", "prompt", "read now", "written", "tokens/s")
    table = [head]
    for row in rows:
        stats = row.stats
        writing_s = max(stats["total_ms"] - stats["queue_ms"] - stats["prompt_ms"], 1) / 1000
        table.append(
            (
                row.typed,
                _short(row.suggestion),
                f"{row.ghost_ms:.0f} ms",
                f"{stats['prompt_tokens']:.0f} tokens",
                f"{stats['decoded_tokens']:.0f}",
                f"{stats['generated_tokens']:.0f}",
                f"{stats['generated_tokens'] / writing_s:.0f}",
            )
        )
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for number, line in enumerate(table):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
        if number == 0:
            print("  " + "  ".join("─" * width for width in widths))
