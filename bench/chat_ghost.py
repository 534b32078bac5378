"""Type while the chat writes an answer on the same machine, for `bench chat ghost`.

The chat has a server of its own in the home of that Neovim; it ends when the home is deleted.
"""

from __future__ import annotations

import json
from asyncio import base_events
from pathlib import Path

from bench import typing_run as bench
from bench.chat_model import CONTEXT_TOKENS, MODEL
from bench.peer import Lcursor
from bench.report import Figure, figure, measuring, percentile
from bench.trials import Spot, Trial, pick_spots
from lcursor.drive.editor import Editor
from lcursor.errors import LcursorError

POSITIONS = 6
PACE_MS = 120.0
START_S = 120.0
SEED = 1

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


class WhileChatting(Lcursor):
    """lcursor with a chat that is answering.

    Args:
        model: of the chat.
    """

    def __init__(self, model: str) -> None:
        chat = {"model": model, "context_tokens": CONTEXT_TOKENS, "idle_minutes": 1}
        settings = {"chat": {**chat, "screen": False}}  # the question is not about code
        super().__init__(init=f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n")
        self.covered = 0
        """Lines that were typed while an answer was being written throughout."""

    def begin(self, editor: Editor) -> str:
        """Wait for the completion model and for the first words of an answer."""
        model = super().begin(editor)
        self._write(editor)
        return model

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Start a new answer before each line."""
        editor.keys("<Esc>")
        self._write(editor)
        editor.keys("A")
        super().warm(editor, spot)

    def drain(self, editor: Editor) -> None:
        """Count the line if the answer was still being written."""
        self.covered += bool(editor.lua(IS_WRITING))
        super().drain(editor)

    def _write(self, editor: Editor) -> None:
        editor.lua(ASK)
        editor.wait_lua(IS_WRITING, timeout_s=START_S)


def measure(neovim: Path, model: str) -> tuple[list[Figure], dict[str, float]]:
    """Type the same lines while no chat runs and while one answers.

    Args:
        neovim: the executable.
        model: of the chat; "" for the small one.
    """
    source = Path(base_events.__file__)
    spots = pick_spots(bench.read_lines(source), POSITIONS, SEED)
    chatting = WhileChatting(model or MODEL)
    found = dict[str, list[Trial]]()
    for name, typist in (("no chat", Lcursor()), ("a chat answers", chatting)):
        measuring(f"typing while {name}")
        _, found[name] = bench.run(typist, neovim, source, spots, pace_ms=PACE_MS)
    if chatting.covered < POSITIONS // 2:
        raise LcursorError("the answers ended before the typing did", "Run it again")
    figures, numbers = [], dict[str, float]()
    for name, trials in found.items():
        times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
        if not times:
            raise LcursorError("no ghost came", "Run it on a quiet machine")
        figures.append(figure(f"key to first valid ghost, {name}", times))
        key = "ghost_alone" if name == "no chat" else "ghost_beside"
        numbers[f"{key}_p50_ms"] = figures[-1].p50
        numbers[f"{key}_p95_ms"] = percentile(times, 95)
        numbers[f"{key}_keys"] = len(times)
    return figures, numbers
