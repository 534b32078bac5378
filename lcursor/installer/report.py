"""Show the progress of an installation: one updated line on a terminal, else occasional lines.

With `--progress json` each line of stdout is an object that lua/lcursor/host/environment.lua
reads. Main thread only.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Literal, TextIO

Mode = Literal["terminal", "plain", "json"]

EVERY_S: dict[Mode, float] = {"terminal": 0.2, "plain": 10.0, "json": 0.5}
"""Minimum time between two lines about the same step."""

UNKNOWN = -1.0
"""The fraction of a step of unknown length."""


def clock(seconds: float) -> str:
    """Return a duration as text: `8.2 s`, `2 min 07 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


class Report:
    """Reports the steps of one run to a terminal, a log or the editor.

    Args:
        mode: None to detect whether `out` is a terminal.
        out: None for stdout.
    """

    def __init__(self, mode: Mode | None = None, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.mode: Mode = mode or ("terminal" if self.out.isatty() else "plain")
        self._began = self._step_began = time.monotonic()
        self._step, self._text, self._fraction = "start", "", UNKNOWN
        self._printed_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._began

    def begin(self, step: str, text: str) -> None:
        """Start a step, and show its text."""
        self._step, self._text, self._fraction = step, text, UNKNOWN
        self._step_began = time.monotonic()
        self._print(since="...")

    def move(self, fraction: float = UNKNOWN, text: str | None = None) -> None:
        """Show the progress of the current step; cheap enough for every line of a compiler."""
        self._fraction = fraction
        self._text = self._text if text is None else text
        self.tick()

    def tick(self) -> None:
        """Update the elapsed time."""
        if time.monotonic() - self._printed_s >= EVERY_S[self.mode]:
            self._print()

    def end(self, text: str) -> None:
        """Show the result of the current step."""
        self._text, self._fraction = text, 1.0
        if self.mode == "json":
            self._print()
        else:
            self._line(f"{self._step:<12} {text}  ({self._since()})\n")

    def note(self, text: str) -> None:
        """Show a line that stays on the screen."""
        if self.mode == "json":
            self._json(self._step, text, UNKNOWN)
        else:
            self._line(f"{'':<12} {text}\n")

    def finish(self, text: str, without: str = "") -> None:
        """Report success, and which optional parts are missing."""
        if self.mode == "json":
            self._json("done", text, 1.0, hint=without)
            return
        if without:
            self._line(f"lcursor: {without}\n")
        self._line(f"lcursor: {text}  ({clock(self.elapsed_s)} in all)\n")

    def fail(self, message: str, hint: str, details: list[str]) -> None:
        """Show an error with its hint, and the last lines of the log."""
        if self.mode == "json":
            self._json("failed", message, UNKNOWN, hint=hint)
            return
        self._line("".join(f"  | {line}\n" for line in details))
        text = f"{message}. {hint}" if hint else message
        self._line(f"lcursor: {text}  (after {clock(self.elapsed_s)})\n")

    def _since(self) -> str:
        return clock(time.monotonic() - self._step_began)

    def _print(self, since: str = "") -> None:
        self._printed_s = time.monotonic()
        if self.mode == "json":
            self._json(self._step, self._text, self._fraction)
            return
        percent = f"{self._fraction:4.0%}  " if self._fraction >= 0 else ""
        line = f"{self._step:<12} {percent}{self._text}  {since or self._since()}"
        if self.mode == "terminal":
            self._line(line[: shutil.get_terminal_size().columns - 1])
        else:
            self._line(line + "\n")

    def _line(self, text: str) -> None:
        self.out.write(f"\r\033[K{text}" if self.mode == "terminal" else text)
        self.out.flush()

    def _json(self, step: str, text: str, fraction: float, **more: str) -> None:
        record = {"step": step, "fraction": round(fraction, 3), "text": text}
        record |= {"elapsed_s": round(self.elapsed_s, 1), **more}
        self.out.write(json.dumps(record) + "\n")
        self.out.flush()
