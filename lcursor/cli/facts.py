"""The result of one check of the doctor. Uses only the standard library."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lcursor.errors import LcursorError

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python -m lcursor"
AGAIN = "Run :LCursor install, or make test in a checkout"

Level = Literal["warn", "error"]


@dataclass
class Fact:
    """A fact about the installation, and its problem."""

    section: str
    text: str
    """One line for the user."""
    data: dict[str, Any] = field(default_factory=dict)
    problem: LcursorError | None = None
    level: Level = "error"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON; the key `problem` exists only with a problem."""
        table = {"section": self.section, "text": self.text, **self.data}
        if self.problem:
            table["problem"] = {
                "code": self.problem.code,
                "level": self.level,
                "message": self.problem.message,
                "hint": exact(self.problem.hint),
            }
        return table


def exact(hint: str) -> str:
    """Add folder and interpreter to a hint, so that its command runs anywhere."""
    command = f"cd {shlex.quote(str(ROOT))} && {shlex.quote(sys.executable)} -m lcursor"
    return hint.replace(COMMAND, command)
