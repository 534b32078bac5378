"""Check a proposal for new errors with the editor's language servers.

The editor requests diagnostics of the old and the new text, which this module compares. Blocks no
longer than `EditRun.diagnose`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from lcursor.changes.records import Check, Lines
from lcursor.edit.rewriting.retry import DiagnosticsCheck
from lcursor.edit.run import EditRun
from lcursor.protocol.edit import EditProblem, EditServer

NAME: Final = "diagnostics"
MAX_ROWS: Final = 20_000
MAX_CHARS: Final = 1 << 20
"""Maximum size of a text for the servers."""
MAX_SHOWN: Final = 5
MAX_SHOWN_CHARS: Final = 240
"""Maximum length of one error."""
DIGITS: Final = re.compile(r"\d+")


def checker(run: EditRun, path: str) -> DiagnosticsCheck | None:
    """Return a function that checks a file's new text; None for a file without servers."""
    real = os.path.realpath(path)
    if not any(each == path or os.path.realpath(each) == real for each in run.lsp_files):
        return None

    def check(path: str, before: Lines, after: Lines) -> Check | None:
        old, new = _text(before), _text(after)
        answer = run.diagnose(path, old, new) if old is not None and new is not None else None
        return compare(answer["servers"], before, after) if answer is not None else None

    return check


def compare(servers: Sequence[EditServer], before: Lines, after: Lines) -> Check | None:
    """Return a check that fails if there are new errors; None if no server has answered."""
    if not servers:
        return None
    found: dict[str, None] = {}
    for server in servers:
        for problem in new_problems(server["before"], server["after"], before, after):
            found[_describe(problem, after)] = None
    words = list(found)
    rest = len(words) - MAX_SHOWN
    if rest > 0:
        words[MAX_SHOWN:] = [f"and {rest} more"]
    return Check(NAME, not words, "\n".join(words))


def new_problems(
    was: Sequence[EditProblem], now: Sequence[EditProblem], before: Lines, after: Lines
) -> list[EditProblem]:
    """Return the errors of the new text that the old one did not have, in the order of rows.

    Because rows move, errors are compared by message, and equal ones by the text of their lines.
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
    """Return the identity of an error without row numbers, which the message may contain."""
    return DIGITS.sub("#", problem["text"]), problem["code"]


def _line(problem: EditProblem, lines: Lines) -> str:
    row = problem["row"]
    return lines[row].strip() if 0 <= row < len(lines) else ""


def _describe(problem: EditProblem, lines: Lines) -> str:
    words = " ".join(problem["text"].split())
    if len(words) > MAX_SHOWN_CHARS:
        words = words[: MAX_SHOWN_CHARS - 1] + "…"
    code = f" [{problem['code']}]" if problem["code"] else ""
    shown = _line(problem, lines)[:MAX_SHOWN_CHARS]
    return f"line {problem['row'] + 1}: {words}{code}" + (f": {shown}" if shown else "")


def _text(lines: Lines) -> str | None:
    """Return lines as one text; None if it is too long or not Unicode."""
    if len(lines) > MAX_ROWS or sum(map(len, lines)) > MAX_CHARS:
        return None
    text = "".join(f"{line}\n" for line in lines)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
