"""What a foreign agent reports of its tools and plans, as steps of a run. Pure.

The agent says what it likes: each field may be missing or have another type.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from lcursor.agent.records import FOREIGN, Observation, ToolCall
from lcursor.protocol.agent import StepKind

KINDS: Final[Mapping[str, StepKind]] = {
    "read": "read",
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "search": "search",
    "execute": "command",
}
"""Kinds of the protocol as those of steps; others are notes."""
MARKS: Final = {"pending": "[ ]", "in_progress": "[-]", "completed": "[x]"}
MAX_TEXT_CHARS: Final = 16_000
MAX_TITLE_CHARS: Final = 1000
MAX_DIFF_CHARS: Final = 200_000
OUTPUTS: Final = ("formatted_output", "aggregated_output", "output", "stdout", "result")
"""Names by which agents give the output of a command in `rawOutput`."""
COMMANDS: Final = ("command", "cmd", "script")
"""Names by which agents give a command in `rawInput`."""


@dataclass(slots=True)
class ToolUse:
    """A call of a tool, as it was reported so far."""

    title: str = ""
    kind: str = "other"
    status: str = "pending"
    content: Sequence[Any] = ()
    input: object = None
    output: object = None

    def update(self, row: Mapping[str, Any]) -> None:
        """Take over what a report says; a field that is missing stays as it was."""
        self.title = _text(row.get("title")) or self.title
        self.kind = _text(row.get("kind")) or self.kind
        self.status = _text(row.get("status")) or self.status
        content = row.get("content")
        self.content = content if isinstance(content, list) and content else self.content
        self.input = row.get("rawInput", self.input)
        self.output = row.get("rawOutput", self.output)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in ("completed", "failed")

    @property
    def step_kind(self) -> StepKind:
        """Its kind, for the user."""
        return KINDS.get(self.kind, "note")

    @property
    def command(self) -> str:
        """The command that it runs; "" if it runs none, or one that is not known."""
        given = self.input if isinstance(self.input, dict) else {}
        for name in COMMANDS:
            value = given.get(name)
            if isinstance(value, list):
                value = _unwrapped([_text(word) for word in value])
            if isinstance(value, str) and value.strip():
                return value
        return ""

    def call(self, root: str) -> ToolCall:
        """Return it as a call of our own.

        Args:
            root: the project, for short names.
        """
        target = self.command if self.step_kind == "command" else ""
        target = without_root(target or self.title, root)[:MAX_TITLE_CHARS]
        name = "command" if self.step_kind == "command" else "path"
        return ToolCall(FOREIGN, {"kind": self.step_kind, name: target})

    def observation(self, root: str) -> Observation:
        """Return its result."""
        is_error = self.status == "failed"
        text = "\n\n".join(part for part in map(_content, self.content) if part.strip())
        if not text:
            text = _output(self.output)
        return Observation(
            clipped(without_root(text, root)), is_error, result="failed" if is_error else ""
        )


def without_root(text: str, root: str) -> str:
    """Return a text in which files of the project have relative names."""
    text = text.replace(f"{root}/", "")
    return text.replace(f"{root[1:]}/", "")  # opencode's names outside of git are relative to /


def clipped(text: str) -> str:
    """Return the beginning and the end of a long text."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    half = MAX_TEXT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def text_of(content: object) -> str:
    """Return the text of a content block; a short description of another kind."""
    if not isinstance(content, dict):
        return ""
    kind = _text(content.get("type"))
    if kind == "text":
        return _text(content.get("text"))
    if kind == "resource_link":
        return _text(content.get("uri"))
    resource = content.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        return _text(resource.get("text")) or _text(resource.get("uri"))
    return f"({kind})" if kind else ""


def plan_step(entries: object) -> tuple[str, str]:
    """Return a title and a list of tasks of a plan."""
    rows = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    done = sum(each.get("status") == "completed" for each in rows)
    lines = [
        f"{MARKS.get(_text(each.get('status')), '[ ]')} {_text(each.get('content'))}"
        for each in rows
    ]
    return f"plan, {done} of {len(rows)} done", "\n".join(lines)


def _output(value: object) -> str:
    """Return the text of a result that is only in `rawOutput`."""
    rows = value if isinstance(value, dict) else {"output": value}
    return next((text for text in map(_text, map(rows.get, OUTPUTS)) if text.strip()), "")


def _content(part: object) -> str:
    """Return the text of a part of a tool's result."""
    if not isinstance(part, dict):
        return ""
    if part.get("type") == "diff":
        return "\n".join(_diff(part))
    return text_of(part.get("content"))


def _diff(part: Mapping[str, Any]) -> Iterator[str]:
    old, new, path = (_text(part.get(name)) for name in ("oldText", "newText", "path"))
    if len(old) + len(new) > MAX_DIFF_CHARS:
        yield f"{PurePath(path).name}: a large change"
        return
    yield from difflib.unified_diff(
        old.splitlines(), new.splitlines(), path if old else "/dev/null", path, lineterm=""
    )


def _unwrapped(words: Sequence[str]) -> str:
    """Return the command in `["bash", "-lc", command]`."""
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return " ".join(words)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
