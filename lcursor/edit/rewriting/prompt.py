"""The prompt of a rewrite.

Attachments come first, so that the server can reuse its cache, and the region comes last, because a
speculative draft copies the last text that resembles the answer. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.changes.lines import without_returns
from lcursor.changes.records import Format, Lines
from lcursor.edit.rewriting.task import FailedAttempt, Task
from lcursor.llm.records import Message

MAX_AROUND_ROWS: Final = 60
MAX_AROUND_CHARS: Final = 3000
"""Maximum of the text above the region, and of the text below it."""
MAX_HEAD_ROWS: Final = 25
MAX_HEAD_CHARS: Final = 1200
"""Maximum of the start of the file with its imports, if that is farther up."""

SYSTEM: Final[dict[Format, str]] = {
    "whole": (
        "You are a programmer who edits code as told. You get a part of a file and a task. Answer "
        "with the whole new text of that part, changed as the task says, in one fenced block and "
        "nothing else. Leave no line out, write no placeholder, and keep the indentation and all "
        "else that the task does not touch. Do not write what stands above or below the part."
    ),
    "search_replace": (
        "You are a programmer who edits code as told. You get a part of a file and a task. Answer "
        "with blocks of this form, inside of one fenced block, and nothing else:\n"
        "<<<<<<< SEARCH\nlines as they are now\n=======\nlines as they shall be\n"
        ">>>>>>> REPLACE\n"
        "Copy the lines to search for letter by letter, with their indentation, and enough of them "
        "that they are found in one place only. Touch nothing but what the task is about."
    ),
    "udiff": (
        "You are a programmer who edits code as told. You get a part of a file and a task. Answer "
        "with a unified diff of that part, in one block fenced as diff, and nothing else. Begin "
        "each hunk with `@@ ... @@`; line numbers are not needed. Lines that stay begin with a "
        "space, lines that go with -, lines that come with +. Copy lines that stay or go letter by "
        "letter, with their indentation. Touch nothing but what the task is about."
    ),
}
CLOSING: Final[dict[Format, str]] = {
    "whole": "Write the whole part with this change.",
    "search_replace": "Write the blocks that make this change.",
    "udiff": "Write the diff that makes this change.",
}


def messages(
    task: Task, feedback: Sequence[FailedAttempt] = (), remark: str = "", *, around: float = 1.0
) -> list[Message]:
    """Return the prompt of a rewrite.

    Args:
        feedback: earlier unsatisfactory attempts, in order.
        remark: the user's comment on an earlier attempt.
        around: share of the surrounding text to show, at most 1.
    """
    parts = [task.context.strip(), _around(task, around), _task_text(task, feedback, remark)]
    text = "\n\n".join(part for part in parts if part)
    return [Message("system", SYSTEM[task.format]), Message("user", text)]


def fence_of(lines: Lines) -> str:
    """Return a code fence that no line of a text closes."""
    longest = max((len(m[0]) for m in re.finditer(r"`{3,}", "\n".join(lines))), default=0)
    return "`" * max(3, longest + 1)


def _task_text(task: Task, feedback: Sequence[FailedAttempt], remark: str) -> str:
    """Return the region and the task, in this order: otherwise a small model forgets the task."""
    rows = [*_part(task), ""]
    if task.selection and task.selection != task.old:
        rows += ["The task is about these lines of it:", *_fenced(task.selection, task.language)]
    if task.sketch.strip():
        rows += ["This is how it was planned:", task.sketch.strip(), ""]
    for attempt in feedback[-1:]:
        if attempt.problems:
            rows.append("An earlier try was refused:")
        rows += [f"- {problem}" for problem in attempt.problems]
        if attempt.lines:
            words = "It was:" if attempt.problems else "An earlier try, to be done in another way:"
            rows += [words, *_fenced(attempt.lines, task.language)]
        rows.append("")
    if remark.strip():
        rows += [f"About an earlier try the user says: {remark.strip()}", ""]
    return "\n".join([*rows, f"Task: {task.instruction.strip()}", CLOSING[task.format]])


def _part(task: Task) -> list[str]:
    if not "".join(task.old).strip():
        where = "between what stands above and below" if "".join(task.lines).strip() else "in it"
        return [f"The part is empty: the new text is put {where} ({task.name})."]
    return [f"The part, {task.name}, {task.region.what}:", *_fenced(task.old, task.language)]


def _fenced(lines: Lines, language: str) -> list[str]:
    fence, word = fence_of(lines), "" if language in ("", "text") else language
    return [fence + word, *without_returns(lines), fence]


def _around(task: Task, share: float) -> str:
    """Return the text around the region, and the start of the file."""
    first, last = task.region.first_row, task.region.last_row
    rows, chars = int(MAX_AROUND_ROWS * share), int(MAX_AROUND_CHARS * share)
    above = _last(task.lines[:first], rows, chars)
    below = _first(task.lines[last:], rows, chars)
    head: Lines = ()
    if len(above) < first:
        room = first - len(above)
        head = _first(task.lines[:room], int(MAX_HEAD_ROWS * share), int(MAX_HEAD_CHARS * share))
    parts = []
    for name, lines in (
        (f"{task.name} begins with", head),
        (f"{task.name}, above the part that is changed", above),
        (f"{task.name}, below the part that is changed", below),
    ):
        if any(line.strip() for line in lines):
            parts.append("\n".join([f"{name}:", *_fenced(lines, task.language)]))
    return "\n\n".join(parts)


def _first(lines: Lines, max_rows: int, max_chars: int) -> Lines:
    """Return as many of the first rows as both limits allow."""
    taken = 0
    for row, line in enumerate(lines[:max_rows]):
        taken += len(line) + 1
        if taken > max_chars:
            return lines[:row]
    return lines[:max_rows]


def _last(lines: Lines, max_rows: int, max_chars: int) -> Lines:
    return _first(lines[::-1], max_rows, max_chars)[::-1]
