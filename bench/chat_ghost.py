"""Who types in `bench chat ghost`: lcursor, while its chat writes an answer on the same machine.

The chat has a server of its own, in the home of that Neovim; the server leaves when that home is
deleted.
"""

from __future__ import annotations

import json
from asyncio import base_events
from collections.abc import Callable
from pathlib import Path

from bench import typing as bench
from bench.chat_model import CONTEXT_TOKENS, MODEL
from bench.peer import Lcursor
from bench.report import Figure, figure, percentile
from bench.trials import Spot, Trial, pick_spots
from lcursor.drive.editor import Editor
from lcursor.errors import LcursorError

POSITIONS = 6
PACE_MS = 120.0
START_S = 120.0
SEED = 1
Say = Callable[[str], None]

ASK = """
local chat = require("lcursor.chat")
local session = chat.current()
if session and session.turn then
  require("lcursor.chat.turns").stop(session)
end
local question = "Print the numbers from 1 to 999, each on a line of its own."
chat.ask(question, { new = true, enter = false })
"""
IS_WRITING = """
local session = require("lcursor.chat").current()
local turn = session and session.turn
return turn ~= nil and turn.bytes > 0
"""


class BesideChat(Lcursor):
    """The product as a user has it whose chat is answering.

    Args:
        model: of the chat.
    """

    def __init__(self, model: str) -> None:
        chat = {"model": model, "context_tokens": CONTEXT_TOKENS, "idle_minutes": 1}
        settings = {"chat": {**chat, "screen": False}}  # what is asked is about no code
        super().__init__(init=f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n")
        self.covered = 0
        """Lines that were typed while an answer was written, to the last ghost."""

    def begin(self, editor: Editor) -> str:
        """Wait for the completion model, and for the first words of an answer."""
        model = super().begin(editor)
        self._write(editor)
        return model

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Have an answer that has just begun, whenever a line is typed."""
        editor.keys("<Esc>")
        self._write(editor)
        editor.keys("A")
        super().warm(editor, spot)

    def drain(self, editor: Editor) -> None:
        """Note whether the answer went on all the time."""
        self.covered += bool(editor.lua(IS_WRITING))
        super().drain(editor)

    def _write(self, editor: Editor) -> None:
        editor.lua(ASK)
        editor.wait_lua(IS_WRITING, timeout_s=START_S)


def measure(neovim: Path, model: str, say: Say) -> tuple[list[Figure], dict[str, float]]:
    """Type the same lines while no chat runs and while one answers.

    Args:
        neovim: the executable.
        model: of the chat; "" for the small one.
        say: told what is being measured.
    """
    source = Path(base_events.__file__)
    spots = pick_spots(bench.read_lines(source), POSITIONS, SEED)
    beside = BesideChat(model or MODEL)
    found = dict[str, list[Trial]]()
    for name, typist in (("no chat", Lcursor()), ("a chat answers", beside)):
        say(f"typing while {name}")
        _, found[name] = bench.run(typist, neovim, source, spots, pace_ms=PACE_MS, told=say)
    if beside.covered < POSITIONS // 2:
        raise LcursorError("the answers ended before the typing did", "Run it again")
    figures, told = [], dict[str, float]()
    for name, trials in found.items():
        times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
        if not times:
            raise LcursorError("no ghost came", "Run it on a quiet machine")
        figures.append(figure(f"key to first valid ghost, {name}", times))
        key = "ghost_alone" if name == "no chat" else "ghost_beside"
        told[f"{key}_p50_ms"] = figures[-1].p50
        told[f"{key}_p95_ms"] = percentile(times, 95)
        told[f"{key}_keys"] = len(times)
    return figures, told
