"""What the doctor finds out: a fact, and what is wrong with it. Standard library only."""

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
    """One thing that was found out, and what is wrong with it."""

    section: str
    text: str
    """In one line, for a person."""
    data: dict[str, Any] = field(default_factory=dict)
    problem: LcursorError | None = None
    level: Level = "error"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON; `problem` is there only when something is wrong."""
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
    """Name the interpreter and the place in a hint, so that its command runs from anywhere."""
    command = f"cd {shlex.quote(str(ROOT))} && {shlex.quote(sys.executable)} -m lcursor"
    return hint.replace(COMMAND, command)
