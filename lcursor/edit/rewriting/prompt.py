"""What a model reads before it rewrites a region: the same beginning for each edit.

Owns the order and the fixed words. What is attached comes first, so that a server finds it in its
cache, and the region is the last code: a draft from what was read takes the last text that is like
the answer. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.edit.records import Format, Lines
from lcursor.edit.rewriting.task import Failed, Task
from lcursor.llm.records import Message

MAX_AROUND_ROWS: Final = 60
MAX_AROUND_CHARS: Final = 3000
"""Of what stands above the region, and of what stands below it."""
MAX_HEAD_ROWS: Final = 25
MAX_HEAD_CHARS: Final = 1200
"""Of the file's beginning, where that is far above: what it imports."""

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
ASKED: Final[dict[Format, str]] = {
    "whole": "Write the whole part with this change.",
    "search_replace": "Write the blocks that make this change.",
    "udiff": "Write the diff that makes this change.",
}


def messages(
    task: Task, feedback: Sequence[Failed] = (), remark: str = "", *, around: float = 1.0
) -> list[Message]:
    """Return the prompt of a rewrite.

    Args:
        task: what to do.
        feedback: tries before this one that were not good enough, the last one last.
        remark: what the user says was wrong with the one before, or wishes besides.
        around: so much of what stands around the region, at most 1.
    """
    parts = [task.context.strip(), _around(task, around), _asked(task, feedback, remark)]
    text = "\n\n".join(part for part in parts if part)
    return [Message("system", SYSTEM[task.format]), Message("user", text)]


def fence_of(lines: Lines) -> str:
    """Return a fence that no line of a text closes."""
    longest = max((len(m[0]) for m in re.finditer(r"`{3,}", "\n".join(lines))), default=0)
    return "`" * max(3, longest + 1)


def _asked(task: Task, feedback: Sequence[Failed], remark: str) -> str:
    """Return the region, and what shall be done with it.

    The task stands behind the region: in front of it a small model forgets it and copies.
    """
    rows = [*_part(task), ""]
    if task.selection and task.selection != task.old:
        rows += ["The task is about these lines of it:", *_fenced(task.selection, task.language)]
    if task.sketch.strip():
        rows += ["This is how it was planned:", task.sketch.strip(), ""]
    for failed in feedback[-1:]:
        if failed.problems:
            rows.append("An earlier try was refused:")
        rows += [f"- {problem}" for problem in failed.problems]
        if failed.lines:
            words = "It was:" if failed.problems else "An earlier try, to be done in another way:"
            rows += [words, *_fenced(failed.lines, task.language)]
        rows.append("")
    if remark.strip():
        rows += [f"About an earlier try the user says: {remark.strip()}", ""]
    return "\n".join([*rows, f"Task: {task.instruction.strip()}", ASKED[task.format]])


def _part(task: Task) -> list[str]:
    if not "".join(task.old).strip():
        where = "between what stands above and below" if "".join(task.lines).strip() else "in it"
        return [f"The part is empty: the new text is put {where} ({task.name})."]
    return [f"The part, {task.name}, {task.region.what}:", *_fenced(task.old, task.language)]


def _fenced(lines: Lines, language: str) -> list[str]:
    fence, word = fence_of(lines), "" if language in ("", "text") else language
    return [fence + word, *lines, fence]


def _around(task: Task, share: float) -> str:
    """Return what stands around the region, and where the file begins."""
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


def _first(lines: Lines, most_rows: int, most_chars: int) -> Lines:
    """Return the first rows, as many as are few enough."""
    taken = 0
    for row, line in enumerate(lines[:most_rows]):
        taken += len(line) + 1
        if taken > most_chars:
            return lines[:row]
    return lines[:most_rows]


def _last(lines: Lines, most_rows: int, most_chars: int) -> Lines:
    return _first(lines[::-1], most_rows, most_chars)[::-1]
