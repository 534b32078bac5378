"""Checks a proposal with the language servers of the editor: are there new errors?

The editor asks them about a document that only they know; here what they say of the old and the new
text is compared. Blocks no longer than `Job.look` does; on the edit's thread.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from lcursor.edit.job import Job
from lcursor.edit.records import Check, Lines
from lcursor.edit.rewriting.attempts import Looks
from lcursor.protocol_edit import EditProblem, EditServer

NAME: Final = "diagnostics"
MAX_ROWS: Final = 20_000
MAX_CHARS: Final = 1 << 20
"""Of a text that servers are asked about."""
MAX_TOLD: Final = 5
MAX_CHARS_TOLD: Final = 240
"""Of one error."""
DIGITS: Final = re.compile(r"\d+")


def checker(job: Job, path: str) -> Looks | None:
    """Return a function that checks a file's new text, None for a file without servers."""
    real = os.path.realpath(path)
    if not any(each == path or os.path.realpath(each) == real for each in job.served):
        return None

    def look(path: str, before: Lines, after: Lines) -> Check | None:
        old, new = _text(before), _text(after)
        answer = job.look(path, old, new) if old is not None and new is not None else None
        return compare(answer["servers"], before, after) if answer is not None else None

    return look


def compare(servers: Sequence[EditServer], before: Lines, after: Lines) -> Check | None:
    """Compare what servers say of an old text and of a new one.

    Args:
        servers: what each says of both.
        before: the old lines.
        after: the new ones.

    Returns:
        A check that fails where there are new errors; None where no server says anything.
    """
    if not servers:
        return None
    found: dict[str, None] = {}
    for server in servers:
        for problem in new_problems(server["before"], server["after"], before, after):
            found[_told(problem, after)] = None
    words = list(found)
    rest = len(words) - MAX_TOLD
    if rest > 0:
        words[MAX_TOLD:] = [f"and {rest} more"]
    return Check(NAME, not words, "\n".join(words))


def new_problems(
    was: Sequence[EditProblem], now: Sequence[EditProblem], before: Lines, after: Lines
) -> list[EditProblem]:
    """Return the errors of the new text that the old one did not have, in the order of rows.

    Errors are the same by what they say, and only so often as they were there: rows move. Which of
    several alike is new is told by their lines.
    """
    lines = Counter((_kind(each), _line(each, before)) for each in was)
    left = []
    for each in now:
        key = (_kind(each), _line(each, after))
        if lines[key] > 0:
            lines[key] -= 1
        else:
            left.append(each)
    kinds: Counter[tuple[str, str]] = Counter()
    for (kind, _), count in lines.items():
        kinds[kind] += count
    found = []
    for each in left:
        if kinds[_kind(each)] > 0:
            kinds[_kind(each)] -= 1
        else:
            found.append(each)
    return sorted(found, key=lambda each: each["row"])


def _kind(problem: EditProblem) -> tuple[str, str]:
    """Return what makes an error the same in another row; what it says may name rows."""
    return DIGITS.sub("#", problem["text"]), problem["code"]


def _line(problem: EditProblem, lines: Lines) -> str:
    row = problem["row"]
    return lines[row].strip() if 0 <= row < len(lines) else ""


def _told(problem: EditProblem, lines: Lines) -> str:
    said = " ".join(problem["text"].split())
    if len(said) > MAX_CHARS_TOLD:
        said = said[: MAX_CHARS_TOLD - 1] + "…"
    code = f" [{problem['code']}]" if problem["code"] else ""
    shown = _line(problem, lines)[:MAX_CHARS_TOLD]
    return f"line {problem['row'] + 1}: {said}{code}" + (f": {shown}" if shown else "")


def _text(lines: Lines) -> str | None:
    """Return lines as one text; None for one that is too long, or is no Unicode."""
    if len(lines) > MAX_ROWS or sum(map(len, lines)) > MAX_CHARS:
        return None
    text = "".join(f"{line}\n" for line in lines)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
