"""Ask whether the commands of `edit.lint` and `edit.test` may run in a project without a sandbox.

These commands run code that a model wrote, before anyone has read it. Where no sandbox works, they
have the user's rights, so the user must allow each command once per project, and again if it
changes.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.changes import history
from lcursor.config import EditConfig
from lcursor.errors import LcursorError
from lcursor.process.sandbox import open_sandbox
from lcursor.protocol.edit import EditChoice
from lcursor.stop import Stop
from lcursor.storage import folders, json_text

Ask = Callable[[str, Sequence[EditChoice]], int]
"""Asks the user; returns the index of the choice, -1 for none."""

NAME: Final = "commands.json"
"""File in the project's folder of the edit history."""
POLL_S: Final = 0.05
QUESTION: Final = "Run the edit's checks? They run code that the model wrote"
NOT_NOW, ALWAYS, NEVER = "Not this time", "Yes, in this project from now on", "Never here"
RISK: Final = (
    "Each proposed change would be checked with these commands before you see it.",
    "No sandbox works here, so they have all your rights and network access: code",
    "that the model wrote could read or delete any file of yours. To get a sandbox:",
    "python -m lcursor sandbox check. A changed command is asked about again.",
)


class Permissions:
    """The answers, in the folder of the edit history; None for the default. Thread: any."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._asking = threading.Lock()

    def allowed(
        self, root: Path, config: EditConfig, ask: Ask, stop: Stop
    ) -> tuple[EditConfig, str]:
        """Return settings without commands that must not run, and a note about these.

        Asks the user about new commands, one question at a time, unless a sandbox works.
        """
        commands = {"edit.lint": config.lint, "edit.test": config.test}
        commands = {name: text for name, text in commands.items() if text}
        if not commands or open_sandbox().level != "none":
            return config, ""
        while not self._asking.acquire(timeout=POLL_S):
            stop.check()
        try:
            answers = self.answers(root)
            unknown = {name: text for name, text in commands.items() if text not in answers}
            if unknown:
                answers |= self._ask(ask, root, unknown)
        finally:
            self._asking.release()
        denied = [name for name, text in commands.items() if not answers.get(text, False)]
        note = ""
        if denied:
            note = f"Not run, as you have not allowed it in this project: {', '.join(denied)}"
        lint = "" if "edit.lint" in denied else config.lint
        test = "" if "edit.test" in denied else config.test
        return replace(config, lint=lint, test=test), note

    def answers(self, root: Path) -> dict[str, bool]:
        """Return the permission of each known command of a project, by its text."""
        try:
            path = history.project_folder(root, self._folder) / NAME
            stored = json_text.parse(path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(stored, dict):
            return {}
        return {text: answer for text, answer in stored.items() if isinstance(answer, bool)}

    def remember(self, root: Path, answers: Mapping[str, bool]) -> None:
        """Store answers; if that fails, the next edit asks again."""
        folder = history.project_folder(root, self._folder)
        with contextlib.suppress(OSError, LcursorError):
            folders.make_private(folder.parent)
            folders.make_private(folder)
            text = json.dumps(self.answers(root) | dict(answers), indent=1)
            folders.write_file(folder / NAME, text.encode())

    def _ask(self, ask: Ask, root: Path, unknown: Mapping[str, str]) -> dict[str, bool]:
        """Ask about commands; the first choice runs nothing, in case of a stray key."""
        lines = [f"{name}: {text}" for name, text in unknown.items()]
        choice = ask(QUESTION, [_choice(name, lines) for name in (NOT_NOW, ALWAYS, NEVER)])
        if choice <= 0:
            return {}
        answers = dict.fromkeys(unknown.values(), choice == 1)
        self.remember(root, answers)
        return answers


def _choice(name: str, lines: Sequence[str]) -> EditChoice:
    return {
        "path": "",
        "name": name,
        "first_row": 0,
        "last_row": 0,
        "lines": [*lines, "", *RISK],
        "why": "",
    }
