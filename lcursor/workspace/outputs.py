"""The outputs of commands: their lines, parts of them, and what is new in them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

MAX_LINE_CHARS: Final = 500
HEAD_SHARE: Final = 0.3
"""Share of the lines that are taken from the beginning of a long output; the rest is its end."""

_FAILED: Final = re.compile(
    r"^\W*(?:FAIL|FAILED|ERROR):? (\w\S*(?: \([A-Za-z_][\w.]*\))?)|^test (\S+) \.\.\. FAILED"
    r"|^\s*(?:not ok \d+ - (?!.*# (?:TODO|SKIP))|[✖✕×] (?!failing tests:))"
    r"(\S.*?)(?: \([\d.]+ ?m?s\)| \d+ ?ms)?$",
    re.MULTILINE,
)
"""Matches the names of failed tests in the output of unittest, pytest, go test, cargo test, TAP,
node, jest and vitest."""
_DIGITS: Final = re.compile(r"\d+")
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def failed_tests(output: str) -> set[str]:
    """Return the names of failed tests; none if the output has another form."""
    return {match[1] or match[2] or match[3] for match in _FAILED.finditer(output)}


def new_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines of an output that were not in an earlier one; numbers do not count."""
    left = Counter(_DIGITS.sub("", line) for line in before)
    new = []
    for line in after:
        key = _DIGITS.sub("", line)
        if left[key] > 0:
            left[key] -= 1
        elif line.strip():
            new.append(line)
    return new


def lines_of(data: bytes) -> list[str]:
    """Return the printable lines of an output; of a line that was overwritten, the last version."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
             for line in text.split("\n")]  # fmt: skip
    if lines and not lines[-1]:
        lines.pop()
    return [printable(line) for line in lines]


def printable(text: str) -> str:
    """Return a text without escape sequences, control characters and surrogates."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def cut_line(line: str) -> str:
    """Return a line without what exceeds `MAX_LINE_CHARS`, and the length of that."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]} … {len(line) - MAX_LINE_CHARS:,} more characters"


def ends_of(lines: Sequence[str], number: int) -> list[str]:
    """Return some lines of the beginning and the end, and between them how many are left out."""
    if number >= len(lines):
        return [cut_line(line) for line in lines]
    head = int(number * HEAD_SHARE)
    tail = lines[len(lines) - (number - head) :]
    rest = counted(len(lines) - number, "line")
    return [*map(cut_line, lines[:head]), f"… {rest} left out …", *map(cut_line, tail)]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
