"""The user's approvals of commands that run outside of the sandbox.

There is one rule: an approval is bound to the content that was approved. It holds for the same
command while the files are the same, and a rejection holds whatever changes (`Answers`). An agent's
command is bound to all files of the agent's copy, and its approval ends with the run. `edit.lint`
and `edit.test` run code that a model wrote, before anyone has read it; they are bound to the files
that decide what they do (`content_of`), and the answers are stored for the project
(`CheckApprovals`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from lcursor.changes import history
from lcursor.changes.records import Lines
from lcursor.config import EditConfig
from lcursor.errors import Cancelled, LcursorError
from lcursor.process.sandbox import open_sandbox
from lcursor.project import listing
from lcursor.project.guarded import runs_by_itself
from lcursor.project.reading import SECRET_TEXT, Reader
from lcursor.protocol.edit import EditChoice
from lcursor.stop import Stop
from lcursor.storage import folders, json_text

Ask = Callable[[str, Sequence[EditChoice]], int]
"""Asks the user; returns the index of the choice, -1 for none."""
AnswerState = Literal["none", "approved", "rejected", "changed"]
"""What the user said of a command; `changed` if it was approved for other files."""

CHANGED: Final = "files have changed since you approved it"
NAME: Final = "commands.json"
"""File in the project's folder of the edit history: by command, the content for which it was
approved, or false. The true of earlier versions, which held for all content, counts no more."""
SHELLS: Final = frozenset({"bash", "sh", "zsh"})
POLL_S: Final = 0.05
QUESTION: Final = "Run the edit's checks? They run code that the model wrote"
NOT_NOW, ALWAYS, NEVER = "Not this time", "Yes, in this project from now on", "Never here"
RISK: Final = (
    "Each proposed change would be checked with these commands before you see it.",
    "No sandbox works here, so they have all your rights and network access: code",
    "that the model wrote could read or delete any file of yours. To get a sandbox:",
    "python -m lcursor sandbox check. You are asked again when a command changes, or a",
    "file that decides what it does, such as a Makefile.",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer about a command."""

    is_approved: bool
    content: str = ""
    """For which it was approved; "" if that is unknown now."""
    reason: str = ""
    """Why it was rejected."""


class Answers:
    """The user's answers by command. Content is an id of files, "" if they are unknown."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self._answers = dict(answers or {})

    def state(self, command: str, content: str) -> AnswerState:
        """Return what holds for a command now."""
        answer = self._answers.get(command)
        if answer is None:
            return "none"
        if not answer.is_approved:
            return "rejected"
        return "approved" if content and answer.content == content else "changed"

    def reason(self, command: str) -> str:
        """Return why a command was rejected."""
        return self._answers[command].reason

    def remember(self, command: str, answer: Answer) -> None:
        """Remember an answer in the place of an earlier one."""
        self._answers[command] = answer

    def extend(self, command: str, before: str, after: str) -> None:
        """Extend an approval to the files as the command left them: it was approved to do that."""
        if self.state(command, before) == "approved":
            self._answers[command] = Answer(True, after)


class CheckApprovals:
    """The answers about `edit.lint` and `edit.test`, in the folder of the edit history.

    Thread: any.

    Args:
        folder: of all histories; None for the default.
        secrets: globs of files that are never read, in addition to the built-in ones.
    """

    def __init__(self, folder: Path | None = None, secrets: Sequence[str] = ()) -> None:
        self._folder, self._secrets = folder, tuple(secrets)
        self._asking = threading.Lock()

    def allowed(
        self, root: Path, config: EditConfig, ask: Ask, stop: Stop, unsaved: Mapping[str, Lines]
    ) -> tuple[EditConfig, str]:
        """Return settings without commands that must not run, and a note about these.

        Asks the user about commands without a valid answer, one question at a time, unless a
        sandbox works.

        Args:
            unsaved: the editor's texts by path.
        """
        named = {"edit.lint": config.lint, "edit.test": config.test}
        commands = {name: text for name, text in named.items() if text}
        if not commands or open_sandbox().level != "none":
            return config, ""
        texts = {path: "\n".join((*lines, "")) for path, lines in unsaved.items()}
        while not self._asking.acquire(timeout=POLL_S):
            stop.check()
        try:
            reader = Reader(root, self._secrets, texts, stop.is_set)
            contents = {text: content_of(reader, text) for text in commands.values()}
            states = self._states(root, contents)
            if "none" in states.values() or "changed" in states.values():
                self._ask(ask, root, commands, states, contents)
        finally:
            self._asking.release()
        denied = [name for name, text in commands.items() if states[text] != "approved"]
        note = ""
        if denied:
            note = f"Not run, as you have not allowed it in this project: {', '.join(denied)}"
        lint = "" if "edit.lint" in denied else config.lint
        test = "" if "edit.test" in denied else config.test
        return replace(config, lint=lint, test=test), note

    def remember(self, root: Path, answers: Mapping[str, str | Literal[False]]) -> None:
        """Store answers as `NAME` describes; if that fails, the next edit asks again."""
        folder = history.project_folder(root, self._folder)
        with contextlib.suppress(OSError, LcursorError):
            folders.make_private(folder.parent)
            folders.make_private(folder)
            text = json.dumps(self._read(root) | dict(answers), indent=1)
            folders.write_file(folder / NAME, text.encode())

    def _states(self, root: Path, contents: Mapping[str, str]) -> dict[str, AnswerState]:
        """Return what holds for each command."""
        stored = {
            command: Answer(content is not False, content or "")
            for command, content in self._read(root).items()
        }
        answers = Answers(stored)
        return {command: answers.state(command, id_) for command, id_ in contents.items()}

    def _read(self, root: Path) -> dict[str, str | Literal[False]]:
        try:
            path = history.project_folder(root, self._folder) / NAME
            stored = json_text.parse(path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(stored, dict):
            return {}
        return {
            command: content
            for command, content in stored.items()
            if content is False or isinstance(content, str)
        }

    def _ask(
        self,
        ask: Ask,
        root: Path,
        commands: Mapping[str, str],
        states: dict[str, AnswerState],
        contents: Mapping[str, str],
    ) -> None:
        """Ask about commands, and update their states.

        The first choice runs nothing, in case of a stray key.
        """
        lines, open_commands = list[str](), list[str]()
        for name, command in commands.items():
            if states[command] in ("none", "changed"):
                open_commands.append(command)
                lines.append(f"{name}: {command}")
                lines += [f"({CHANGED})"] if states[command] == "changed" else []
        choice = ask(QUESTION, [_choice(name, lines) for name in (NOT_NOW, ALWAYS, NEVER)])
        if choice <= 0:
            return
        states |= dict.fromkeys(open_commands, "approved" if choice == 1 else "rejected")
        self.remember(
            root, {text: contents[text] if choice == 1 else False for text in open_commands}
        )


def content_of(reader: Reader, command: str) -> str:
    """Return an id of the files that decide what a command does; "" if they are unknown.

    Secret files do not count, because no copy of the project contains them. Blocks.

    Raises:
        Cancelled: the reader was stopped.
    """
    try:
        found = listing.names(reader.root, cancel=reader.cancel)
    except Cancelled:
        raise
    except LcursorError:
        return ""
    if found.note:
        return ""
    digest = hashlib.sha256()
    for name in found.files:
        path = reader.root / name
        if decides(name, command) and not reader.secret(path):
            file = reader.read(path)
            if file.error == SECRET_TEXT:
                continue
            if file.error:
                return ""
            digest.update(repr((name, file.text)).encode())
    return digest.hexdigest()


def decides(name: str, command: str) -> bool:
    """Return whether a file of the project decides what a command does, by its name.

    That is a file that runs code by itself, such as a Makefile, or the script that is the command.
    Other files are what the command checks.
    """
    return runs_by_itself(name) or name == _script(command)


@cache
def _script(command: str) -> str:
    """Return the program that a command starts, as the name of a file of the project."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    program = next((word for word in words if word not in SHELLS and "=" not in word), "")
    return program.removeprefix("./")


def _choice(name: str, lines: Sequence[str]) -> EditChoice:
    return {
        "path": "",
        "name": name,
        "first_row": 0,
        "last_row": 0,
        "lines": [*lines, "", *RISK],
        "why": "",
    }
